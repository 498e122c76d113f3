#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One second of each video of a folder and its sound, in batches: shapes and means.

    python video_clips.py FOLDER

Needs FFmpeg's libraries and NumPy.  ops.decode_video and ops.decode_audio do the same without Python in between.
"""

import sys
from pathlib import Path

import numpy as np

from stoker.io import (
    Demuxer,
    convert_frames,
    decode_packets,
    get_audio_filter_desc,
    get_video_filter_desc,
    to_numpy,
)
from stoker.pipeline import PipelineBuilder

WINDOW = (0.5, 1.5)  # seconds
PICTURES = get_video_filter_desc(frame_rate=(8, 1), scale_width=64, scale_height=64, num_frames=8)
SOUND = get_audio_filter_desc(sample_rate=16000, num_channels=1, timestamp=WINDOW, num_frames=16000)


def decode(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(8, 64, 64, 3) uint8 and (1, 16000) float32; what is too short is padded."""
    with Demuxer(str(path)) as demuxer:
        video = demuxer.demux_video(WINDOW)
        audio = demuxer.demux_audio(WINDOW)
    clip = convert_frames(decode_packets(video, PICTURES))
    sound = convert_frames(decode_packets(audio, SOUND))
    return to_numpy(clip), to_numpy(sound)


def collate(samples: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.stack([clip for clip, _ in samples]), np.stack([sound for _, sound in samples])


def main(folder: str) -> None:
    paths = sorted(Path(folder).rglob("*.mp4"))
    pipeline = (
        PipelineBuilder()
        .add_source(paths)
        .pipe(decode, concurrency=4, output_order="input")
        .aggregate(2)
        .pipe(collate)
        .add_sink(3)
        .build(num_threads=4)
    )
    with pipeline.auto_stop():
        for clips, sounds in pipeline:
            print(clips.shape, f"{clips.mean():.3f}", sounds.shape, f"{np.abs(sounds).mean():.5f}")


if __name__ == "__main__":
    main(sys.argv[1])
