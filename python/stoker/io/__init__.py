"""Media, arrays and archives, in and out.

    load_npy, load_npz, NpzFile    NumPy's files and archives
    iter_zipfile, iter_tarfile     the entries of any archive
    load_wav, parse_wav            WAV files
    Demuxer, demux_*, Decoder      audio, video and images, through FFmpeg
    load_audio, load_video...      the same in one call
    iter_lines, iter_jsonl         lines of text, and JSON
    iter_arrow, iter_parquet       record batches, through pyarrow

Names are looked up when they are first used, so that importing the package costs nothing.
"""

from .._lazy import lookup as _lookup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import utils
    from ._arrow import iter_arrow, iter_parquet
    from ._codec import AudioCodec, ImageCodec, VideoCodec
    from ._config import DecodeConfig, DemuxConfig, decode_config, demux_config
    from ._convert import CPUBuffer, CPUStorage, convert_frames, cpu_storage, to_numpy, to_torch
    from ._decode import AudioDecoder, Decoder, VideoDecoder, decode_packets
    from ._demux import BSF, Demuxer, InputNotFoundError, apply_bsf, demux_audio, demux_image, demux_video
    from ._filters import (
        get_abuffer_desc,
        get_audio_filter_desc,
        get_buffer_desc,
        get_filter_desc,
        get_video_filter_desc,
    )
    from ._frames import AudioFrames, ImageFrames, VideoFrames
    from ._lines import iter_jsonl, iter_lines
    from ._load import load_audio, load_image, load_image_batch, load_video
    from ._npy import load_npy
    from ._npz import NpzFile, load_npz
    from ._packets import AudioPackets, ImagePackets, VideoPackets
    from ._tar import iter_tarfile
    from ._wav import WAVHeader, load_wav, parse_wav
    from ._zip import CorruptArchiveError, UnsupportedArchiveError, iter_zipfile

_MODULES = ("utils",)
_HOMES = {  # in which module of this package each name is
    "AudioCodec": "_codec",
    "AudioDecoder": "_decode",
    "AudioFrames": "_frames",
    "AudioPackets": "_packets",
    "BSF": "_demux",
    "CPUBuffer": "_convert",
    "CPUStorage": "_convert",
    "CorruptArchiveError": "_zip",
    "DecodeConfig": "_config",
    "Decoder": "_decode",
    "DemuxConfig": "_config",
    "Demuxer": "_demux",
    "ImageCodec": "_codec",
    "ImageFrames": "_frames",
    "ImagePackets": "_packets",
    "InputNotFoundError": "_demux",
    "NpzFile": "_npz",
    "UnsupportedArchiveError": "_zip",
    "VideoCodec": "_codec",
    "VideoDecoder": "_decode",
    "VideoFrames": "_frames",
    "VideoPackets": "_packets",
    "WAVHeader": "_wav",
    "apply_bsf": "_demux",
    "convert_frames": "_convert",
    "cpu_storage": "_convert",
    "decode_config": "_config",
    "decode_packets": "_decode",
    "demux_audio": "_demux",
    "demux_config": "_config",
    "demux_image": "_demux",
    "demux_video": "_demux",
    "get_abuffer_desc": "_filters",
    "get_audio_filter_desc": "_filters",
    "get_buffer_desc": "_filters",
    "get_filter_desc": "_filters",
    "get_video_filter_desc": "_filters",
    "iter_arrow": "_arrow",
    "iter_jsonl": "_lines",
    "iter_lines": "_lines",
    "iter_parquet": "_arrow",
    "iter_tarfile": "_tar",
    "iter_zipfile": "_zip",
    "load_audio": "_load",
    "load_image": "_load",
    "load_image_batch": "_load",
    "load_npy": "_npy",
    "load_npz": "_npz",
    "load_video": "_load",
    "load_wav": "_wav",
    "parse_wav": "_wav",
    "to_numpy": "_convert",
    "to_torch": "_convert",
}

__all__ = [
    "AudioCodec",
    "AudioDecoder",
    "AudioFrames",
    "AudioPackets",
    "BSF",
    "CPUBuffer",
    "CPUStorage",
    "CorruptArchiveError",
    "DecodeConfig",
    "Decoder",
    "DemuxConfig",
    "Demuxer",
    "ImageCodec",
    "ImageFrames",
    "ImagePackets",
    "InputNotFoundError",
    "NpzFile",
    "UnsupportedArchiveError",
    "VideoCodec",
    "VideoDecoder",
    "VideoFrames",
    "VideoPackets",
    "WAVHeader",
    "apply_bsf",
    "convert_frames",
    "cpu_storage",
    "decode_config",
    "decode_packets",
    "demux_audio",
    "demux_config",
    "demux_image",
    "demux_video",
    "get_abuffer_desc",
    "get_audio_filter_desc",
    "get_buffer_desc",
    "get_filter_desc",
    "get_video_filter_desc",
    "iter_arrow",
    "iter_jsonl",
    "iter_lines",
    "iter_parquet",
    "iter_tarfile",
    "iter_zipfile",
    "load_audio",
    "load_image",
    "load_image_batch",
    "load_npy",
    "load_npz",
    "load_video",
    "load_wav",
    "parse_wav",
    "to_numpy",
    "to_torch",
    "utils",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
