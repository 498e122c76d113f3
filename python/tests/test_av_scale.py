"""Pictures that libswscale converts alone: as the filters do, and arrays without a copy."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from stoker.io import Decoder, Demuxer, VideoReader, convert_frames, decode_packets, demux_video, load_video, to_numpy, utils

from av import make, needs_ffmpeg

pytestmark = needs_ffmpeg

FORMATS = ["yuv420p", "yuv422p", "yuv444p", "yuv410p", "nv12", "gray", "yuv420p10le", "yuva420p", "bgr24", "gbrp", "rgb565le"]
COLORS = {
    "plain": [],
    "bt709": ["-colorspace", "bt709"],
    "full": ["-color_range", "pc"],
    "bt2020": ["-colorspace", "bt2020nc", "-color_range", "tv"],
}
FILTERS = [
    "format=pix_fmts=rgb24",
    "format=pix_fmts=bgra",
    "scale=w=128:h=64:flags=bicubic,format=pix_fmts=rgb24",
    "scale=w=64:h=37:flags=bilinear,format=pix_fmts=rgba",
    "scale=w=320:h=100:flags=lanczos,format=pix_fmts=bgr24",
    "crop=w=128:h=64:x=9:y=7:exact=1,scale=w=64:h=37:flags=bilinear,format=pix_fmts=rgb24,hflip",
    "crop=w=64:h=49:x=8:y=6:exact=1,format=pix_fmts=rgba",
]


def clip(folder, form, *more, size="192x108", name="raw.nut"):
    return make(folder / name, "-c:v", "rawvideo", "-pix_fmt", form, *more, size=size, seconds=0.2)


def pictures(path, filters):
    return to_numpy(convert_frames(decode_packets(demux_video(path), filters)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("filters", FILTERS)
def test_equal_to_the_filters(tmp_path, form, filters):
    path = clip(tmp_path, form)
    assert np.array_equal(pictures(path, filters), pictures(path, "null," + filters))


@pytest.mark.parametrize("colors", COLORS)
@pytest.mark.parametrize("size", ["192x108", "191x107"])
def test_colors_as_the_filters(tmp_path, colors, size):
    path = clip(tmp_path, "yuv420p", "-c:v", "ffv1", *COLORS[colors], size=size, name="clip.mkv")
    for filters in FILTERS:
        assert np.array_equal(pictures(path, filters), pictures(path, "null," + filters))


def test_properties_as_the_filters(tmp_path):
    path = clip(tmp_path, "yuv420p")
    for filters in FILTERS:
        ours, theirs = (decode_packets(demux_video(path), text) for text in (filters, "null," + filters))
        for name in ("num_frames", "width", "height", "pix_fmt", "num_planes", "time_base", "frame_rate"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.get_pts() == theirs.get_pts()


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_used_again(tmp_path):
    path = clip(tmp_path, "yuv420p")
    demuxer = Demuxer(path)
    decoder = Decoder(demuxer.video_codec, filter_desc=FILTERS[0])
    packets = demux_video(path)
    first = to_numpy(convert_frames(decoder_step(decoder, packets)))
    where, wanted = address(first), first.copy()
    second = to_numpy(convert_frames(decoder_step(decoder, packets)))
    assert address(second) != where  # the first is still there
    assert np.array_equal(first, wanted)
    del first
    gc.collect()
    third = to_numpy(convert_frames(decoder_step(decoder, packets)))
    alone = utils.get_ffmpeg_versions()["libavfilter"][0] < 10  # else it is the filters that convert
    assert address(third) == where or not alone
    assert np.array_equal(third, wanted) and np.array_equal(second, wanted)


def decoder_step(decoder, packets):
    """The frames of all packets, in one object."""
    [frames] = decoder.streaming_decode_packets(packets.clone())
    assert len(frames) == 5
    return frames


def test_arrays_outlive_everything(tmp_path):
    path = clip(tmp_path, "yuv420p")
    arrays = [to_numpy(load_video(path)) for _ in range(3)]
    gc.collect()
    assert all(np.array_equal(one, arrays[0]) for one in arrays)
    arrays[0][:] = 0
    assert arrays[1].any()


def test_what_others_hold_is_copied(tmp_path):
    frames = decode_packets(demux_video(clip(tmp_path, "yuv420p")), FILTERS[0])
    one, copy, same = frames[2], frames[1:3], frames.clone()
    array = to_numpy(convert_frames(frames))
    wanted = array.copy()
    array[:] = 7
    assert np.array_equal(to_numpy(convert_frames(one)), wanted[2])
    assert np.array_equal(to_numpy(convert_frames(copy)), wanted[1:3])
    assert np.array_equal(to_numpy(convert_frames(same)), wanted)


def test_pictures_of_other_sizes(tmp_path):
    """One decoder, whose blocks grow and shrink."""
    paths = [clip(tmp_path, "yuv420p", size=size, name=f"{size}.nut") for size in ("192x108", "64x64", "1280x720", "64x64")]
    decoder = Decoder(Demuxer(paths[0]).video_codec, filter_desc=FILTERS[0])
    for times in (1, 3, 1):
        packets = demux_video(paths[0])
        for _ in range(times):
            array = to_numpy(convert_frames(decoder_step(decoder, packets)))
            assert np.array_equal(array, pictures(paths[0], "null," + FILTERS[0]))
    for path in paths:
        assert np.array_equal(pictures(path, FILTERS[0]), pictures(path, "null," + FILTERS[0]))


def test_on_threads(tmp_path):
    path = clip(tmp_path, "yuv420p")
    wanted = pictures(path, "null," + FILTERS[0])
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(pictures(path, FILTERS[0]), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


SIZED = {
    "30x22": [
        "format=pix_fmts=rgb24",  # rows of 90 bytes: by the filters, and copied
        None,
        "scale=w=64:h=22:flags=bicubic,format=pix_fmts=rgb24",  # rows of whole cache lines: in place
        "scale=w=16:h=11:flags=bilinear,format=pix_fmts=rgba",
    ],
    "64x22": ["format=pix_fmts=bgr24"],
    "80x22": ["format=pix_fmts=bgra"],
}


@pytest.mark.parametrize("form", ["yuv420p", "yuv420p10le", "gbrp"])
@pytest.mark.parametrize("size", SIZED)
def test_clips_that_go_backwards(tmp_path, form, size):
    """A picture is written where the one behind it is already."""
    path = clip(tmp_path, form, size=size)  # five frames
    clips = [[4, 3, 2, 1, 0], [4, 2, 3], [1, 1, 0]]
    for filters in SIZED[size]:
        every = pictures(path, filters)
        with VideoReader(path, filter_desc=filters) as reader:
            for found, indices in zip(reader.plan(clips), clips, strict=True):
                assert np.array_equal(found, every[indices])
            assert np.array_equal(reader.get_frames_at(clips[0]), every[::-1])
