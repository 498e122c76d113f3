"""Every name that programs of spdl.io use is there."""

from __future__ import annotations

from importlib import import_module

import pytest

NAMES = {
    "io": """
        ArrayInterface AudioCodec AudioDecoder AudioEncodeConfig AudioEncoder AudioFrames AudioPackets BSF
        CPUBuffer CPUStorage CUDAArrayInterface CUDABuffer CUDAConfig DecodeConfig Decoder DemuxConfig Demuxer
        FilterGraph ImageCodec ImageFrames ImagePackets Muxer NpzFile NvDecDecoder VideoCodec VideoDecoder VideoEncodeConfig
        VideoEncoder VideoFrames VideoPackets WAVHeader apply_bsf audio_encode_config convert_array
        convert_frames cpu_storage create_reference_audio_frame create_reference_video_frame cuda_config
        decode_config decode_image_nvjpeg decode_packets decode_packets_nvdec demux_audio demux_config
        demux_image demux_video encode_image get_abuffer_desc get_audio_filter_desc get_buffer_desc
        get_filter_desc get_video_filter_desc iter_tarfile load_audio load_image load_image_batch
        load_image_batch_nvjpeg load_npy load_npz load_video load_wav nv12_to_bgr nv12_to_rgb nvdec_decoder
        parse_wav sample_decode_video save_image streaming_load_video_nvdec to_jax to_numba to_numpy to_torch transfer_buffer
        transfer_buffer_cpu transfer_tensor transfer_tensor_d2h transfer_tensor_h2d utils video_encode_config
    """,
    "io.utils": """
        built_with_cuda built_with_nvcodec built_with_nvjpeg get_ffmpeg_filters get_ffmpeg_log_level
        get_ffmpeg_versions set_ffmpeg_log_level trace_counter trace_event trace_gc tracing
    """,
}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in NAMES.items() for n in names.split()])
def test_name(module, name):
    package = import_module(f"stoker.{module}")
    assert getattr(package, name) is not None
    assert name in package.__all__
    assert name in dir(package)
