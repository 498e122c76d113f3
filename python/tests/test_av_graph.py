"""FilterGraph, compared with what the ffmpeg command makes by -filter_complex."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import stoker
from stoker.io import (
    AudioFrames,
    Decoder,
    Demuxer,
    FilterGraph,
    UnknownLabelError,
    VideoFrames,
    convert_frames,
    decode_packets,
    demux_audio,
    demux_image,
    demux_video,
    get_abuffer_desc,
    get_buffer_desc,
)

from av import VIDEOS, ffmpeg, make, needs_ffmpeg, tone
from support import at_once

pytestmark = needs_ffmpeg


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graph")


@pytest.fixture(scope="module")
def clip(folder):
    return make(folder / "clip.mp4", *VIDEOS["h264.mp4"])


@pytest.fixture(scope="module")
def other(folder):
    """Shorter, wider, and with another time base."""
    return make(folder / "other.mkv", "-c:v", "ffv1", "-pix_fmt", "yuv420p", size="80x48", seconds=1)


@pytest.fixture(scope="module")
def wav(folder):
    return tone(folder / "tone.wav", "-c:a", "pcm_f32le", seconds=1)


@pytest.fixture(scope="module")
def wav2(folder):
    return tone(folder / "low.wav", "-c:a", "pcm_f32le", channels=1, rate=22050, seconds=2)


def array(frames):
    return np.asarray(convert_frames(frames))


def video(path):
    packets = demux_video(path)
    return packets.codec, decode_packets(packets, None)


def audio(path):
    packets = demux_audio(path)
    return packets.codec, decode_packets(packets, None)


def run(desc, frames, outputs):
    """What each output gives when all is put in at once."""
    graph = FilterGraph(desc)
    for key, some in frames.items():
        graph.add_frames(some.clone(), key)
    graph.flush()
    return [graph.get_frames(key) for key in outputs]


def command(paths, desc, label, kind, shape, dtype=np.uint8, map_kind="rawvideo"):
    """The same by the command, whose labels are those of files."""
    inputs = [x for path in paths for x in ("-i", path)]
    more = ["-fps_mode", "passthrough"] if map_kind == "rawvideo" else []
    raw = ffmpeg(*inputs, "-filter_complex", desc, "-map", label, *more, "-f", kind, "-")
    return np.frombuffer(raw, dtype).reshape(-1, *shape)


def test_one_input_and_one_output(clip):
    codec, frames = video(clip)
    filters = "hflip,scale=w=32:h=24,format=rgb24"
    graph = FilterGraph(f"{get_buffer_desc(codec)},{filters},buffersink")
    graph.add_frames(frames[:20])
    part = graph.get_frames()
    assert isinstance(part, VideoFrames)
    assert (len(part), part.width, part.height, part.pix_fmt) == (20, 32, 24, "rgb24")
    assert part.get_pts() == [i * 512 for i in range(20)]
    assert graph.get_frames() is None
    graph.add_frames(frames[20:])
    graph.flush()
    found = np.concatenate([array(part), array(graph.get_frames())])
    assert graph.get_frames() is None
    np.testing.assert_array_equal(found, command([clip], f"[0:v]{filters}[x]", "[x]", "rawvideo", (24, 32, 3)))


def test_two_videos_side_by_side(clip, other):
    (a, one), (b, two) = video(clip), video(other)
    assert a.time_base != b.time_base
    desc = f"{get_buffer_desc(a, label='a')}[a];{get_buffer_desc(b, label='b')}[b];[a][b]hstack,buffersink@both"
    (frames,) = run(desc, {"buffer@a": one, "buffer@b": two}, ["buffersink@both"])
    expected = command([clip, other], "[0:v][1:v]hstack[x]", "[x]", "rawvideo", (72, 144))
    assert frames.width == 144
    np.testing.assert_array_equal(array(frames)[:, 0], expected)


def test_one_video_fades_into_another(clip):
    """`xfade` wants a constant rate, which the input's description has to say."""
    codec, frames = video(clip)
    fade = "xfade=duration=0.4:offset=0.8,format=yuv420p"
    desc = f"{get_buffer_desc(codec, label='a')}[a];{get_buffer_desc(codec, label='b')},hflip[b];[a][b]{fade},buffersink@both"
    (both,) = run(desc, {"buffer@a": frames, "buffer@b": frames}, ["buffersink@both"])
    expected = command([clip, clip], f"[1:v]hflip[b];[0:v][b]{fade}[x]", "[x]", "rawvideo", (72, 64))
    assert both.frame_rate == (25, 1)
    np.testing.assert_array_equal(array(both)[:, 0], expected)


def test_frames_wait_for_those_of_the_other_input(clip):
    codec, frames = video(clip)
    desc = f"{get_buffer_desc(codec, label='a')}[a];{get_buffer_desc(codec, label='b')}[b];[a][b]vstack,buffersink"
    graph = FilterGraph(desc)
    graph.add_frames(frames[:10], "a")
    assert graph.get_frames() is None
    for i in range(10):
        graph.add_frames(frames[i], "b")
        part = graph.get_frames()
        assert part is not None
        assert part.get_pts() == [512 * i]
        picture = array(part)[0, 0]
        np.testing.assert_array_equal(picture[:48], array(frames[i])[0, :48])
        np.testing.assert_array_equal(picture[48:96], array(frames[i])[0, :48])


def test_two_outputs(clip):
    codec, frames = video(clip)
    filters = "split[x][y];[x]hflip,format=gray{0};[y]scale=w=32:h=24,format=rgb24{1}"
    desc = f"{get_buffer_desc(codec, label='in')},{filters.format(',buffersink@x', ',buffersink@y')}"
    x, y = run(desc, {"in": frames}, ["x", "y"])
    labelled = f"[0:v]{filters.format('[g]', '[c]')}"
    for found, label, shape, drop in ((x, "[g]", (48, 64, 1), "[c]"), (y, "[c]", (24, 32, 3), "[g]")):
        desc = f"{labelled};{drop}nullsink"
        np.testing.assert_array_equal(array(found), command([clip], desc, label, "rawvideo", shape))


def test_sounds_are_mixed(wav, wav2):
    (a, one), (b, two) = audio(wav), audio(wav2)
    mix = "amix=inputs=2:normalize=0,aformat=sample_fmts=flt"
    for change in ("", "aresample=44100,aformat=channel_layouts=stereo,"):
        desc = f"{get_abuffer_desc(a, label='a')}[a];{get_abuffer_desc(b, label='b')},{change}anull[b];[a][b]{mix},abuffersink"
        (frames,) = run(desc, {"a": one, "b": two}, [None])
        assert isinstance(frames, AudioFrames)
        assert (frames.sample_rate, frames.num_channels) == (44100, 2)
        desc = f"[1:a]{change}anull[b];[0:a][b]{mix}[x]"
        expected = command([wav, wav2], desc, "[x]", "f32le", (2,), np.float32, "audio")
        np.testing.assert_array_equal(array(frames), expected)


def test_sound_and_pictures_in_one_graph(clip, wav):
    (v, pictures), (a, sound) = video(clip), audio(wav)
    desc = f"{get_buffer_desc(v, label='x')},vflip,buffersink@x;{get_abuffer_desc(a, label='x')},volume=2,abuffersink@x"
    graph = FilterGraph(desc)
    assert (graph.inputs, graph.outputs) == (("buffer@x", "abuffer@x"), ("buffersink@x", "abuffersink@x"))
    with pytest.raises(stoker.InvalidArgumentError, match="takes audio"):
        graph.add_frames(pictures.clone(), "abuffer@x")
    with pytest.raises(stoker.InvalidArgumentError, match=r"which input is meant\? The graph has buffer@x, abuffer@x"):
        graph.add_frames(pictures.clone(), "x")
    graph.add_frames(pictures.clone(), "buffer@x")
    graph.add_frames(sound.clone(), "abuffer@x")
    np.testing.assert_array_equal(array(graph.get_frames("buffersink@x"))[:, 0, :48], array(pictures)[:, 0, 47::-1])
    np.testing.assert_allclose(array(graph.get_frames("abuffersink@x")), 2 * array(sound), rtol=1e-6)


def test_frames_of_another_time_base(clip):
    """Their times are counted anew in that of the input."""
    codec, frames = video(clip)
    desc = get_buffer_desc(codec).replace("time_base=1/12800", "time_base=1/1000")
    (found,) = run(f"{desc},buffersink", {None: frames}, [None])
    assert found.time_base == (1, 1000)
    assert found.get_pts() == [40 * i for i in range(50)]


def test_streams_in_parts(folder, clip):
    """Frames as they are decoded, and an output with as many as are wanted."""
    with Demuxer(clip) as demuxer:
        codec = demuxer.video_codec
        decoder = Decoder(codec, filter_desc=None)
        decoder.set_buffer_size(4)
        graph = FilterGraph(f"{get_buffer_desc(codec)},fps=50,buffersink")
        found = []
        for packets in demuxer.streaming_demux(num_packets=7):
            for frames in decoder.streaming_decode_packets(packets):
                graph.add_frames(frames)
                while (part := graph.get_frames(num_frames=3)) is not None:
                    assert len(part) <= 3
                    found += part.get_pts()
        for frames in decoder.flush():
            graph.add_frames(frames)
        graph.flush()
        while (part := graph.get_frames(num_frames=3)) is not None:
            found += part.get_pts()
    assert found == list(range(100))


def test_images(folder, clip):
    packets = demux_image(clip)
    graph = FilterGraph(f"{get_buffer_desc(packets.codec)},format=rgb24,buffersink")
    expected = array(decode_packets(packets.clone()))
    graph.add_frames(decode_packets(packets, None))
    graph.flush()
    np.testing.assert_array_equal(array(graph.get_frames())[0], expected)


def test_sources_without_input(clip):
    graph = FilterGraph("testsrc2=s=64x48:r=25,format=rgb24,buffersink")
    assert graph.inputs == ()
    assert [len(graph.get_frames(num_frames=n)) for n in (1, 7)] == [1, 7]
    with pytest.raises(UnknownLabelError, match="has no input; its inputs: none"):
        graph.add_frames(video(clip)[1])


def test_names(clip):
    codec, frames = video(clip)
    source = get_buffer_desc(codec)
    graph = FilterGraph(f"{source},buffersink")
    assert (graph.inputs, graph.outputs) == (("Parsed_buffer_0",), ("Parsed_buffersink_1",))
    assert repr(graph) == "FilterGraph<Parsed_buffer_0 -> Parsed_buffersink_1>"
    graph.add_frames(frames[:2], "Parsed_buffer_0")
    assert len(graph.get_frames("Parsed_buffersink_1")) == 2
    graph = FilterGraph(f"{get_buffer_desc(codec, label='a')},split[x][y];[x]buffersink@x;[y]buffersink@y")
    some = frames[:2]
    for wrong in ("nosuch", "", "buffersink@x", "buffer"):
        with pytest.raises(UnknownLabelError, match="the graph has no input .*; its inputs: buffer@a") as error:
            graph.add_frames(some, wrong)
        assert isinstance(error.value, IndexError)
        assert isinstance(error.value, ValueError)
    graph.add_frames(some)
    with pytest.raises(TypeError, match="consumed"):
        len(some)
    with pytest.raises(IndexError, match="no output a; its outputs: buffersink@x, buffersink@y"):
        graph.get_frames("a")
    with pytest.raises(stoker.InvalidArgumentError, match="which output is meant"):
        graph.get_frames()
    assert len(graph.get_frames("x")) == len(graph.get_frames("buffersink@y")) == 2


WRONG = {
    "": "Invalid argument",
    "nosuch": "No such filter: 'nosuch'",
    "{0},nosuch,buffersink": "No such filter: 'nosuch'",
    "{0},scale=nonsense=1,buffersink": "Option 'nonsense' not found|Option not found",
    "{0},hflip": 'not connected to any destination',
    "hflip,buffersink": 'not connected to any source',
    "[in]hflip[out]": 'not connected to any source',
    "buffer=1,buffersink": "Unable to parse|Invalid argument",
    "buffer@a=video_size=64x48,buffersink": "Invalid argument",
    "{0},aresample=8000,abuffersink": "Media type mismatch",
    "{0}[a];[b]hstack,buffersink": "not connected|unconnected|Invalid argument",
    "{0},nullsink": "no output: buffersink or abuffersink is one",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_wrong_descriptions(clip, text):
    codec, _frames = video(clip)
    with pytest.raises(stoker.InvalidArgumentError, match=WRONG[text]) as error:
        FilterGraph(text.format(get_buffer_desc(codec)))
    assert isinstance(error.value, ValueError)


def test_frames_that_do_not_fit(clip, other, wav):
    codec, frames = video(clip)
    rgb = decode_packets(demux_video(clip))
    wide = video(other)[1]
    graph = FilterGraph(f"{get_buffer_desc(codec, label='a')},buffersink")
    with pytest.raises(stoker.InvalidArgumentError, match="in rgb24, 64x48, and the input buffer@a was described as yuv420p, 64x48"):
        graph.add_frames(rgb)
    assert len(rgb) == 50
    with pytest.raises(stoker.InvalidArgumentError, match="in yuv420p, 80x48"):
        graph.add_frames(wide)
    sound_codec, sound = audio(wav)
    with pytest.raises(stoker.InvalidArgumentError, match="takes pictures"):
        graph.add_frames(sound)
    mono = FilterGraph(f"{get_abuffer_desc(sound_codec).replace('=stereo', '=mono')},abuffersink")
    with pytest.raises(stoker.InvalidArgumentError, match="flt, 44100 Hz, stereo, and .* flt, 44100 Hz, mono"):
        mono.add_frames(sound)
    graph.add_frames(frames)
    assert len(graph.get_frames()) == 50


def test_after_the_end(clip):
    codec, frames = video(clip)
    graph = FilterGraph(f"{get_buffer_desc(codec)},reverse,buffersink")
    graph.add_frames(frames[:5])
    assert graph.get_frames() is None
    graph.flush()
    graph.flush()
    np.testing.assert_array_equal(array(graph.get_frames()), array(frames[4::-1]))
    with pytest.raises(stoker.InvalidArgumentError, match="was flushed"):
        graph.add_frames(frames)
    assert len(frames) == 50
    assert graph.get_frames() is None


def test_filters_that_have_had_enough(clip):
    codec, frames = video(clip)
    graph = FilterGraph(f"{get_buffer_desc(codec)},trim=end_frame=3,buffersink")
    for i in range(0, 50, 10):
        graph.add_frames(frames[i : i + 10])
    assert len(graph.get_frames()) == 3
    graph.add_frames(frames)
    assert graph.get_frames() is None


def test_dump(clip):
    codec, _frames = video(clip)
    text = FilterGraph(f"{get_buffer_desc(codec, label='a')},hflip,buffersink@b").dump()
    for part in ("buffer@a", "(hflip)", "buffersink@b", "64x48"):
        assert part in text


def test_types(clip):
    for wrong in (b"x", None, 3):
        with pytest.raises(TypeError, match="desc must be a str"):
            FilterGraph(wrong)
    codec, frames = video(clip)
    graph = FilterGraph(f"{get_buffer_desc(codec)},buffersink")
    for wrong in (demux_video(clip), None, b"frames"):
        with pytest.raises(TypeError, match="expected frames"):
            graph.add_frames(wrong)
    with pytest.raises(TypeError):
        graph.add_frames(frames, key=3)
    assert len(frames) == 50
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="num_frames"):
            graph.get_frames(num_frames=wrong)


def test_frames_outlive_the_graph(clip):
    codec, frames = video(clip)
    graph = FilterGraph(f"{get_buffer_desc(codec)},vflip,buffersink")
    expected = array(frames.clone())
    graph.add_frames(frames)
    found = graph.get_frames(num_frames=10)
    del graph, frames
    gc.collect()
    np.testing.assert_array_equal(array(found)[:, 0, :48], expected[:10, 0, 47::-1])


def test_many_threads_on_one_graph(clip):
    codec, frames = video(clip)
    graph = FilterGraph(f"{get_buffer_desc(codec)},hflip,buffersink")
    got = []

    def use():
        for i in range(50):
            try:
                graph.add_frames(frames[i])
                part = graph.get_frames()
                if part is not None:
                    got.append(len(part))
            except stoker.BusyError:
                pass

    at_once(*[use] * 4)
    last = graph.get_frames()
    assert 0 < sum(got) + (len(last) if last else 0) <= 200
