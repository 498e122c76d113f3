"""Media, arrays and archives, in and out.

    load_npy, load_npz, NpzFile    NumPy's files and archives
    iter_zipfile, iter_tarfile     the entries of any archive
    load_wav, parse_wav            WAV files
    Demuxer, demux_*, Decoder      audio, video and images, through FFmpeg
    load_audio, load_video...      the same in one call
    LiveReader                     cameras, network streams and pipes, as they come
    Muxer, save_image              the other way, from frames and arrays to files
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
    from ._convert import (
        ArrayInterface,
        CPUBuffer,
        CPUStorage,
        CUDAArrayInterface,
        convert_array,
        convert_frames,
        cpu_storage,
        to_jax,
        to_numba,
        to_numpy,
        to_torch,
    )
    from ._cuda import (
        CUDABuffer,
        CUDAConfig,
        NvDecDecoder,
        cuda_config,
        decode_image_nvjpeg,
        decode_packets_nvdec,
        load_image_batch_nvjpeg,
        nv12_to_bgr,
        nv12_to_rgb,
        nvdec_decoder,
        streaming_load_video_nvdec,
        transfer_buffer,
        transfer_buffer_cpu,
    )
    from ._decode import AudioDecoder, Decoder, VideoDecoder, decode_packets
    from ._demux import BSF, Demuxer, InputNotFoundError, apply_bsf, demux_audio, demux_image, demux_video
    from ._encode import AudioEncoder, Muxer, VideoEncoder
    from ._encode_config import AudioEncodeConfig, VideoEncodeConfig, audio_encode_config, video_encode_config
    from ._filters import (
        get_abuffer_desc,
        get_audio_filter_desc,
        get_buffer_desc,
        get_filter_desc,
        get_video_filter_desc,
    )
    from ._frames import AudioFrames, ImageFrames, VideoFrames
    from ._graph import FilterGraph, UnknownLabelError
    from ._lines import iter_jsonl, iter_lines
    from ._live import LiveReader, LiveStats
    from ._load import load_audio, load_image, load_image_batch, load_video
    from ._npy import load_npy
    from ._npz import NpzFile, load_npz
    from ._packets import AudioPackets, ImagePackets, VideoPackets
    from ._reference import create_reference_audio_frame, create_reference_video_frame
    from ._save import encode_image, save_image
    from ._reader import VideoPlan, VideoReader
    from ._sample import sample_decode_video
    from ._tar import iter_tarfile
    from ._transfer import transfer_tensor, transfer_tensor_d2h, transfer_tensor_h2d
    from ._wav import WAVHeader, load_wav, parse_wav
    from ._zip import CorruptArchiveError, UnsupportedArchiveError, iter_zipfile

_MODULES = ("utils",)
_HOMES = {  # in which module of this package each name is
    "ArrayInterface": "_convert",
    "AudioCodec": "_codec",
    "AudioDecoder": "_decode",
    "AudioEncodeConfig": "_encode_config",
    "AudioEncoder": "_encode",
    "AudioFrames": "_frames",
    "AudioPackets": "_packets",
    "BSF": "_demux",
    "CPUBuffer": "_convert",
    "CPUStorage": "_convert",
    "CUDAArrayInterface": "_convert",
    "CUDABuffer": "_cuda",
    "CUDAConfig": "_cuda",
    "CorruptArchiveError": "_zip",
    "DecodeConfig": "_config",
    "Decoder": "_decode",
    "DemuxConfig": "_config",
    "Demuxer": "_demux",
    "FilterGraph": "_graph",
    "ImageCodec": "_codec",
    "ImageFrames": "_frames",
    "ImagePackets": "_packets",
    "InputNotFoundError": "_demux",
    "LiveReader": "_live",
    "LiveStats": "_live",
    "Muxer": "_encode",
    "NpzFile": "_npz",
    "NvDecDecoder": "_cuda",
    "UnknownLabelError": "_graph",
    "UnsupportedArchiveError": "_zip",
    "VideoCodec": "_codec",
    "VideoDecoder": "_decode",
    "VideoEncodeConfig": "_encode_config",
    "VideoEncoder": "_encode",
    "VideoFrames": "_frames",
    "VideoPackets": "_packets",
    "VideoPlan": "_reader",
    "VideoReader": "_reader",
    "WAVHeader": "_wav",
    "apply_bsf": "_demux",
    "audio_encode_config": "_encode_config",
    "convert_array": "_convert",
    "convert_frames": "_convert",
    "cpu_storage": "_convert",
    "create_reference_audio_frame": "_reference",
    "create_reference_video_frame": "_reference",
    "cuda_config": "_cuda",
    "decode_config": "_config",
    "decode_image_nvjpeg": "_cuda",
    "decode_packets": "_decode",
    "decode_packets_nvdec": "_cuda",
    "demux_audio": "_demux",
    "demux_config": "_config",
    "demux_image": "_demux",
    "demux_video": "_demux",
    "encode_image": "_save",
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
    "load_image_batch_nvjpeg": "_cuda",
    "load_npy": "_npy",
    "load_npz": "_npz",
    "load_video": "_load",
    "load_wav": "_wav",
    "nv12_to_bgr": "_cuda",
    "nv12_to_rgb": "_cuda",
    "nvdec_decoder": "_cuda",
    "parse_wav": "_wav",
    "sample_decode_video": "_sample",
    "save_image": "_save",
    "streaming_load_video_nvdec": "_cuda",
    "to_jax": "_convert",
    "to_numba": "_convert",
    "to_numpy": "_convert",
    "to_torch": "_convert",
    "transfer_buffer": "_cuda",
    "transfer_buffer_cpu": "_cuda",
    "transfer_tensor": "_transfer",
    "transfer_tensor_d2h": "_transfer",
    "transfer_tensor_h2d": "_transfer",
    "video_encode_config": "_encode_config",
}

__all__ = [
    "ArrayInterface",
    "AudioCodec",
    "AudioDecoder",
    "AudioEncodeConfig",
    "AudioEncoder",
    "AudioFrames",
    "AudioPackets",
    "BSF",
    "CPUBuffer",
    "CPUStorage",
    "CUDAArrayInterface",
    "CUDABuffer",
    "CUDAConfig",
    "CorruptArchiveError",
    "DecodeConfig",
    "Decoder",
    "DemuxConfig",
    "Demuxer",
    "FilterGraph",
    "ImageCodec",
    "ImageFrames",
    "ImagePackets",
    "InputNotFoundError",
    "LiveReader",
    "LiveStats",
    "Muxer",
    "NpzFile",
    "NvDecDecoder",
    "UnknownLabelError",
    "UnsupportedArchiveError",
    "VideoCodec",
    "VideoDecoder",
    "VideoEncodeConfig",
    "VideoEncoder",
    "VideoFrames",
    "VideoPackets",
    "VideoPlan",
    "VideoReader",
    "WAVHeader",
    "apply_bsf",
    "audio_encode_config",
    "convert_array",
    "convert_frames",
    "cpu_storage",
    "create_reference_audio_frame",
    "create_reference_video_frame",
    "cuda_config",
    "decode_config",
    "decode_image_nvjpeg",
    "decode_packets",
    "decode_packets_nvdec",
    "demux_audio",
    "demux_config",
    "demux_image",
    "demux_video",
    "encode_image",
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
    "load_image_batch_nvjpeg",
    "load_npy",
    "load_npz",
    "load_video",
    "load_wav",
    "nv12_to_bgr",
    "nv12_to_rgb",
    "nvdec_decoder",
    "parse_wav",
    "sample_decode_video",
    "save_image",
    "streaming_load_video_nvdec",
    "to_jax",
    "to_numba",
    "to_numpy",
    "to_torch",
    "transfer_buffer",
    "transfer_buffer_cpu",
    "transfer_tensor",
    "transfer_tensor_d2h",
    "transfer_tensor_h2d",
    "utils",
    "video_encode_config",
]

__getattr__, __dir__ = _lookup(globals(), _HOMES, _MODULES)
