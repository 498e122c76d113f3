"""Public functions and methods take what programs give them, by the same names and with the same defaults."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

BUILD = (
    "num_threads, max_failures=-1, report_stats_interval=-1, queue_class=None, task_hook_factory=None"
)
PRIORITY = "max_workers=None, thread_name_prefix='', initializer=None, initargs=()"

ENCODE = (
    "bit_rate=-1, compression_level=-1, qscale=-1, gop_size=-1, max_b_frames=-1, colorspace=None, "
    "color_primaries=None, color_trc=None"
)

NVDEC = "crop_left=0, crop_top=0, crop_right=0, crop_bottom=0, scale_width=-1, scale_height=-1"

KINDS = ("Audio", "Video", "Image")

EXPECTED = {
    "pipeline": {
        "Pipeline.start": "*, timeout=None, **kwargs",
        "Pipeline.stop": "*, timeout=None",
        "Pipeline.auto_stop": "*, timeout=None",
        "Pipeline.get_item": "*, timeout=None",
        "Pipeline.get_iterator": "*, timeout=None",
        "Pipeline.__iter__": "",
        "build_pipeline": f"config, /, *, {BUILD}, stage_id=0, background_tasks=None, use_thread_output_queue=False",
        "iterate_in_subprocess": "fn, *, buffer_size=3, initializer=None, mp_context=None, timeout=None, "
        "daemon=False, arena=None",
        "run_pipeline_in_subprocess": f"config, /, *, {BUILD}, background_tasks=None, "
        "use_thread_output_queue=False, **kwargs",
        "iterate_in_subinterpreter": "fn, *, buffer_size=3, initializer=None, timeout=None",
        "run_pipeline_in_subinterpreter": f"config, /, *, {BUILD}, background_tasks=None, "
        "use_thread_output_queue=False, buffer_size=3, initializer=None, timeout=None",
        "PriorityThreadPoolExecutor": PRIORITY,
        "PriorityInterpreterPoolExecutor": PRIORITY,
        "SharedMemoryRingBuffer": "capacity, *, acquire_timeout=60",
        "SharedMemorySegmentPool": "segment_size, count, *, acquire_timeout=60",
        "cache_iterator": "src, num_caches, *, return_caches_after=None, stop_after=None, delete_src=True",
        "TaskHook.stage_hook": "",
        "TaskHook.task_hook": "input_item=None",
        "TaskStatsHook": "info, interval=-1",
        "TaskStatsHook.interval_stats_callback": "stats",
        "TaskPerfStats": "num_tasks, num_failures, ave_time, p90_time, p99_time",
        "AsyncQueue": "info, *, buffer_size=1",
        "AsyncQueue.stage_hook": "",
        "StatsQueue": "info, *, buffer_size=1, interval=-1",
        "StatsQueue.interval_stats_callback": "stats",
        "QueuePerfStats": "elapsed, num_items, ave_put_time, ave_get_time, p90_put_time, p99_put_time, "
        "p90_get_time, p99_get_time, occupancy_rate, qps=None",
        "StageInfo": "pipeline_id, stage_id, stage_name, concurrency=None",
        "create_task": "coro, name=None, log_cancelled=False, suppress_repeated_logs=False, "
        "suppression_threshold=5, suppression_warning_interval=100",
        "BackgroundTask.run": "",
        "ProcessGroupStatsMonitor": "callback, interval=60, mp_context=None",
        "profile_pipeline": "cfg, num_inputs=1000, *, callback=None, hook=None",
        "ProfileResult": "name, stats",
        "ProfileHook.stage_profile_hook": "stage, concurrency",
        "ProfileHook.pipeline_profile_hook": "",
    },
    "pipeline.config": {
        "set_compact_log": "value",
        "set_default_background_tasks": "tasks=None",
        "set_default_build_callback": "callback=None",
        "set_default_hook_class": "hook_class=None",
        "set_default_queue_class": "queue_class=None",
    },
    "pipeline.defs": {
        "PlacementConfig": "target, name='placement', buffer_size=1",
        "ProcessPoolExecutorConfig": "max_workers=None, initializer=None, initargs=(), mp_context=None",
        "InterpreterPoolExecutorConfig": "max_workers=None, initializer=None, initargs=()",
    },
    "source": {
        "DistributedDeterministicSampler": "n, /, *, rank, world_size, ddp_drop_last_distributed_round=True",
        "DistributedRandomSampler": "n, /, *, rank, world_size, num_draws=None, weights=None, seed=0, "
        "ddp_drop_last_distributed_round=True",
        "DistributedRandomSampler.shuffle": "seed",
    },
    "source.utils": {
        "MergeIterator": "iterables, *, weights=None, stop_after=0, seed=0",
        "embed_shuffle": "src, /, *, shuffle_last=False, epoch=0",
        "repeat_source": "src, /, epoch=0",
    },
    "source.local_directory": {"LocalDirectory": "root, pattern", "LocalDirectory.shuffle": "seed"},
    "source.imagenet": {"ImageNet": "root, split='val'", "get_mappings": "", "parse_wnid": "s"},
    "io": {
        "Demuxer": "src, *, demux_config=None, name=None",
        "Demuxer.demux_audio": "window=None, *, bsf=None",
        "Demuxer.demux_video": "window=None, *, bsf=None",
        "Demuxer.demux_image": "*, bsf=None",
        "Demuxer.streaming_demux": "indices=None, *, duration=-1, num_packets=-1",
        "Demuxer.has_audio": "",
        "demux_audio": "src, *, timestamp=None, demux_config=None, bsf=None, name=None",
        "demux_video": "src, *, timestamp=None, demux_config=None, bsf=None, name=None",
        "demux_image": "src, *, demux_config=None, bsf=None, name=None",
        "BSF": "codec, bsf",
        "BSF.filter": "packets, flush=False",
        "BSF.flush": "",
        "apply_bsf": "packets, bsf",
        "VideoPackets.get_timestamps": "raw=False",
        **{f"{kind}Packets.clone": "" for kind in KINDS},
        **{f"{kind}Packets.deserialize": "data" for kind in KINDS},
        **{f"{kind}Packets.deserialize_view": "data" for kind in KINDS},
        **{f"{kind}Frames.clone": "" for kind in KINDS},
        "VideoFrames.__getitem__": "key",
        "VideoFrames.get_pts": "",
        "VideoFrames.get_timestamps": "",
        "demux_config": "format=None, format_options=None, buffer_size=8096, *, protocols=None, timeout=60.0, "
        "max_bytes=4294967296",
        "decode_config": "decoder=None, decoder_options=None, *, max_pixels=268435456, max_bytes=4294967296",
        "decode_packets": "packets, filter_desc='__PLACEHOLDER__', decode_config=None, *, num_frames=-1, strict=False",
        "Decoder": "codec, *, filter_desc='__PLACEHOLDER__', decode_config=None, strict=False",
        "AudioDecoder.streaming_decode_packets": "packets",
        "AudioDecoder.flush": "",
        "VideoDecoder.streaming_decode_packets": "packets",
        "VideoDecoder.set_buffer_size": "buffer_size",
        "VideoDecoder.flush": "",
        "sample_decode_video": "packets, indices, *, decode_config=None, filter_desc='__PLACEHOLDER__', strict=False",
        "FilterGraph": "desc",
        "FilterGraph.add_frames": "frames, key=None",
        "FilterGraph.get_frames": "key=None, *, num_frames=-1",
        "FilterGraph.flush": "",
        "FilterGraph.dump": "",
        "convert_frames": "frames, storage=None",
        "cpu_storage": "size, pin_memory=False",  # SPDL has True, which needs CUDA
        "create_reference_audio_frame": "array, sample_fmt, sample_rate, pts=0",
        "create_reference_video_frame": "array, pix_fmt, frame_rate, pts=0",
        "audio_encode_config": "*, num_channels, sample_rate, sample_fmt='fltp', bit_rate=-1, "
        "compression_level=-1, qscale=-1",
        "video_encode_config": f"*, height, width, frame_rate=None, pix_fmt='rgb24', {ENCODE}",
        "Muxer": "dst, /, *, format=None, protocols=None, timeout=60.0",
        "Muxer.add_encode_stream": "config, *, encoder=None, encoder_config=None",
        "Muxer.add_remux_stream": "codec",
        "Muxer.open": "muxer_config=None",
        "Muxer.write": "stream_index, packets",
        "Muxer.flush": "",
        "Muxer.close": "",
        "AudioEncoder.encode": "frames",
        "AudioEncoder.flush": "",
        "VideoEncoder.encode": "frames",
        "VideoEncoder.flush": "",
        "save_image": f"path, data, pix_fmt='rgb24', *, {ENCODE}",
        "encode_image": "path, data, pix_fmt='rgb24', *, encode_config=None",
        "to_numpy": "buffer",
        "to_torch": "buffer",
        "to_numba": "buffer",
        "to_jax": "buffer",
        "convert_array": "vals, storage=None",
        "cuda_config": "device_index, stream=2, allocator=None",
        "transfer_buffer": "buffer, *, device_config",
        "transfer_buffer_cpu": "buffer",
        "decode_packets_nvdec": f"packets, *, device_config, pix_fmt='rgb', {NVDEC}",
        "nvdec_decoder": f"cuda_config, codec, *, use_cache=True, {NVDEC}",
        "streaming_load_video_nvdec": "src, device_config, *, num_frames, post_processing_params=None, use_cache=True",
        "load_image_batch_nvjpeg": "srcs, *, device_config, width, height, pix_fmt='rgb'",
        "decode_image_nvjpeg": "src, *, device_config=None, scale_width=-1, scale_height=-1, pix_fmt='rgb'",
        "nv12_to_rgb": "buffers, *, device_config, coeff=1, sync=False",
        "nv12_to_bgr": "buffers, *, device_config, coeff=1, sync=False",
        "transfer_tensor_h2d": "batch, /, *, num_caches=4",
        "transfer_tensor": "batch, /, *, num_caches=4",
        "transfer_tensor_d2h": "batch, /, *, device=None, stream=None, producer_event=None",
        "load_audio": "src, timestamp=None, *, demux_config=None, decode_config=None, filter_desc='__PLACEHOLDER__', "
        "device_config=None, name=None, strict=False",
        "load_video": "src, timestamp=None, *, demux_config=None, decode_config=None, filter_desc='__PLACEHOLDER__', "
        "device_config=None, name=None, strict=False",
        "load_image": "src, *, demux_config=None, decode_config=None, filter_desc='__PLACEHOLDER__', "
        "device_config=None, name=None",
        "load_image_batch": "srcs, *, width, height, pix_fmt='rgb24', demux_config=None, decode_config=None, "
        "filter_desc='__PLACEHOLDER__', device_config=None, storage=None, strict=True",
        "get_video_filter_desc": "*, frame_rate=None, timestamp=None, scale_width=None, scale_height=None, "
        "scale_algo='bicubic', scale_mode='pad', crop_width=None, crop_height=None, pix_fmt='rgb24', num_frames=None, "
        "pad_mode=None, filter_desc=None",
        "get_audio_filter_desc": "*, sample_rate=None, num_channels=None, sample_fmt='fltp', timestamp=None, "
        "num_frames=None, filter_desc=None",
        "get_filter_desc": "packets, **filter_args",
        "get_buffer_desc": "codec, label=None, pix_fmt=None",
        "get_abuffer_desc": "codec, *, label=None, sample_fmt=None",
        "load_npy": "data, *, copy=False",
        "load_npz": f"data, *, max_uncompressed_bytes={2**30}, max_directory_bytes=None",
        "NpzFile.__getitem__": "name",
        "NpzFile.get": "key, default=None",
        "NpzFile.keys": "",
        "NpzFile.values": "",
        "NpzFile.items": "",
        "load_wav": "data, time_offset_seconds=None, duration_seconds=None, *, max_bytes=None",
        "parse_wav": "data",
        "iter_tarfile": "src, *, max_uncompressed_bytes=None, max_ratio=None, max_member_bytes=None, "
        "max_header_bytes=None, strict=True, timeout=None",
    },
    "dataloader": {
        "DataLoader": "src, *, preprocessor=None, batch_size=None, drop_last=False, aggregator=None, "
        "transfer_fn=None, buffer_size=3, num_threads=8, timeout=None, output_order='completion'",
        "CacheDataLoader": "dl, num_caches, return_caches_after, stop_after=None",
        "get_pytorch_dataloader": "dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, "
        "num_workers=1, collate_fn=None, pin_memory=False, drop_last=False, timeout=None, worker_init_fn=None, "
        "multiprocessing_context=None, generator=None, *, prefetch_factor=2, persistent_workers=False, "
        "pin_memory_device=None, in_order=False, worker_init_concurrency=None",
    },
    "io.utils": {
        "get_ffmpeg_versions": "",
        "get_ffmpeg_filters": "",
        "get_ffmpeg_log_level": "",
        "set_ffmpeg_log_level": "level",
        "built_with_cuda": "",
        "built_with_nvcodec": "",
        "built_with_nvjpeg": "",
        "tracing": "output, buffer_size=4096, process_name=None, enable=True",
        "trace_event": "name",
        "trace_counter": "i, val",
        "trace_gc": "",
    },
}


def signature(thing) -> str:
    parameters = inspect.signature(thing).parameters.values()
    bare = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(bare))[1:-1]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in EXPECTED.items() for name in names]
)
def test_signature(module, name):
    thing = import_module(f"stoker.{module}")
    for part in name.split("."):
        thing = getattr(thing, part)
    assert signature(thing) == EXPECTED[module][name]


PICTURES = "width height pix_fmt num_planes"
ATTRIBUTES = {
    "AudioPackets": "timestamp codec sample_rate num_channels",
    "VideoPackets": "timestamp codec frame_rate width height pix_fmt",
    "ImagePackets": "codec width height pix_fmt",
    "AudioFrames": "num_frames sample_rate num_channels sample_fmt",
    "VideoFrames": f"{PICTURES} num_frames time_base frame_rate",
    "ImageFrames": f"{PICTURES} metadata pts",
    "AudioCodec": "name sample_rate num_channels sample_fmt channel_layout time_base",
    "VideoCodec": "name width height pix_fmt frame_rate time_base sample_aspect_ratio colorspace color_primaries color_trc",
    "ImageCodec": "name width height pix_fmt time_base sample_aspect_ratio colorspace color_primaries color_trc",
    "AudioEncoder": "frame_size",
    "Demuxer": "audio_stream_index video_stream_index audio_codec video_codec image_codec",
}


@pytest.mark.parametrize(("name", "attribute"), [(name, a) for name, words in ATTRIBUTES.items() for a in words.split()])
def test_attribute(name, attribute):
    found = inspect.getattr_static(getattr(import_module("stoker.io"), name), attribute)
    assert inspect.isdatadescriptor(found)
