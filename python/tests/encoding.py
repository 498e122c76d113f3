"""Pictures and sounds to encode, and files that are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.io import (
    Muxer,
    VideoEncoder,
    audio_encode_config,
    create_reference_audio_frame,
    create_reference_video_frame,
    video_encode_config,
)

from av import needs

HEIGHT, WIDTH, RATE = 48, 64, 25


def coded(name, encoder, *rest):
    """A parameter of a test, which is skipped where this FFmpeg was built without the encoder."""
    return pytest.param(name, encoder, *rest, marks=needs("encoders", encoder))


def clip(n=20, pix_fmt="rgb24"):
    """Pictures that move, and are smooth enough for lossy codecs."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    planes = [np.stack([128 + 100 * np.sin((x + 2 * i) / 9 + c) * np.cos(y / 7) for i in range(n)]) for c in range(3)]
    luma = planes[0].astype(np.uint8)
    if pix_fmt in ("rgb24", "bgr24"):
        return np.stack(planes, -1).astype(np.uint8)
    if pix_fmt == "yuv444p":
        return np.stack(planes, 1).astype(np.uint8)
    if pix_fmt == "gray":
        return luma
    chroma = np.full((n, 1, HEIGHT // 2, WIDTH), 128, np.uint8)  # yuv420p
    return np.concatenate([luma[:, None], chroma], 2)


def sound(n=20000, channels=2, sample_fmt="fltp"):
    t = np.arange(n)
    waves = np.stack([0.5 * np.sin(t * (0.03 + 0.01 * c)) for c in range(channels)])
    if sample_fmt.startswith("s16"):
        waves = (waves * 32767).astype(np.int16)
    elif sample_fmt.startswith("s32"):
        waves = (waves * 8388607).astype(np.int32) << 8
    waves = waves.astype(np.float32) if waves.dtype == np.float64 else waves
    return waves if sample_fmt.endswith("p") else np.ascontiguousarray(waves.T)


def encode(path, streams, *, format=None, muxer_config=None, part=7):
    """Writes streams, (config, array, options), in parts."""
    muxer = Muxer(path, format=format)
    encoders = [muxer.add_encode_stream(config, **options) for config, _array, options in streams]
    with muxer.open(muxer_config):
        for i, (config, array, _options) in enumerate(streams):
            video = isinstance(encoders[i], VideoEncoder)
            planar = not video and config.sample_fmt.endswith("p")
            length = array.shape[1] if planar else len(array)
            step = part if video else part * 111
            for at in range(0, length, step):
                piece = array[:, at : at + step] if planar else array[at : at + step]
                if video:
                    frames = create_reference_video_frame(piece, config.pix_fmt, config.frame_rate, at)
                else:
                    frames = create_reference_audio_frame(piece, config.sample_fmt, config.sample_rate, at)
                if (packets := encoders[i].encode(frames)) is not None:
                    muxer.write(i, packets)
            if (packets := encoders[i].flush()) is not None:
                muxer.write(i, packets)
    return path


def video(pix_fmt="rgb24", **options):
    return video_encode_config(height=HEIGHT, width=WIDTH, frame_rate=RATE, pix_fmt=pix_fmt, **options)


def audio(sample_fmt="fltp", channels=2, rate=44100, **options):
    return audio_encode_config(num_channels=channels, sample_rate=rate, sample_fmt=sample_fmt, **options)


def of(array, config, pts=0):
    if array.dtype == np.uint8:
        return create_reference_video_frame(array, config.pix_fmt, config.frame_rate, pts)
    return create_reference_audio_frame(array, config.sample_fmt, config.sample_rate, pts)
