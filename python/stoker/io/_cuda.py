"""What needs an NVIDIA GPU and a library that was built with CUDA: the names, and what to do without."""

from __future__ import annotations

from ..errors import UnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn, TypeAlias

    from .._stoker import CPUBuffer
    from ._codec import VideoCodec
    from ._demux import SourceType
    from ._packets import VideoPackets

    Allocator: TypeAlias = tuple[Callable[[int, int, int], int], Callable[[int], None]]

__all__ = [
    "CUDABuffer",
    "CUDAConfig",
    "NvDecDecoder",
    "cuda_config",
    "decode_image_nvjpeg",
    "decode_packets_nvdec",
    "load_image_batch_nvjpeg",
    "no_device",
    "nv12_to_bgr",
    "nv12_to_rgb",
    "nvdec_decoder",
    "streaming_load_video_nvdec",
    "transfer_buffer",
    "transfer_buffer_cpu",
]

_MOVE = "stoker.io.to_torch(buffer).to('cuda') moves an array to a GPU through PyTorch"
_VIDEO = f"load_video() and decode_packets() decode on the CPU, and {_MOVE}"
_IMAGE = f"load_image() and load_image_batch() decode on the CPU, and {_MOVE}"


def _missing(what: str, instead: str) -> NoReturn:
    raise UnsupportedError(
        f"{what} needs an NVIDIA GPU and CUDA, which is not built in (stoker.io.utils.built_with_cuda()): {instead}"
    )


def no_device(device_config: object) -> None:
    """Of the loaders: what asks for a GPU."""
    if device_config is not None:
        _missing("device_config", f"leave it out, and {_MOVE}")


class CUDAConfig:
    """What `cuda_config` makes."""

    def __init__(self) -> None:
        _missing("CUDAConfig", _MOVE)


class CUDABuffer:
    """Decoded media in the memory of a GPU."""

    if TYPE_CHECKING:
        device_index: int
        __cuda_array_interface__: dict[str, Any]

    def __init__(self) -> None:
        _missing("CUDABuffer", _MOVE)


class NvDecDecoder:
    """A video decoder of the GPU; `nvdec_decoder` makes it."""

    if TYPE_CHECKING:

        def init_decoder(self, *args: Any, **kwargs: Any) -> None: ...
        def decode_packets(self, packets: VideoPackets) -> CUDABuffer: ...
        def init_buffer(self, num_frames: int) -> None: ...
        def streaming_decode_packets(self, packets: VideoPackets) -> Iterator[CUDABuffer]: ...
        def flush(self) -> Iterator[CUDABuffer]: ...

    def __init__(self) -> None:
        _missing("NvDecDecoder", _VIDEO)


def cuda_config(device_index: int, stream: int = 2, allocator: Allocator | None = None) -> CUDAConfig:
    """Which GPU, stream and allocator to use.

    stream: the address of a CUDA stream; 2 is the default one of each thread.
    allocator: (allocate(size, device, stream) -> address, free(address)).
    Errors: `UnsupportedError`, a RuntimeError: there is no CUDA.
    """
    _missing("cuda_config", _MOVE)


def transfer_buffer(buffer: CPUBuffer, *, device_config: CUDAConfig) -> CUDABuffer:
    """The array in the memory of a GPU.  Errors: as `cuda_config`."""
    _missing("transfer_buffer", _MOVE)


def transfer_buffer_cpu(buffer: CUDABuffer) -> CPUBuffer:
    """The array in the memory of the CPU.  Errors: as `cuda_config`."""
    _missing("transfer_buffer_cpu", "arrays that were decoded without a GPU are in the CPU's memory already")


def decode_packets_nvdec(
    packets: VideoPackets,
    *,
    device_config: CUDAConfig,
    pix_fmt: str = "rgb",
    crop_left: int = 0,
    crop_top: int = 0,
    crop_right: int = 0,
    crop_bottom: int = 0,
    scale_width: int = -1,
    scale_height: int = -1,
) -> CUDABuffer:
    """Decodes video by NVDEC to (frames, height, width, 3).  Errors: as `cuda_config`."""
    _missing("decode_packets_nvdec", _VIDEO)


def nvdec_decoder(
    cuda_config: CUDAConfig,
    codec: VideoCodec,
    *,
    use_cache: bool = True,
    crop_left: int = 0,
    crop_top: int = 0,
    crop_right: int = 0,
    crop_bottom: int = 0,
    scale_width: int = -1,
    scale_height: int = -1,
) -> NvDecDecoder:
    """A decoder that takes packets in parts.  Errors: as `cuda_config`."""
    _missing("nvdec_decoder", _VIDEO)


def streaming_load_video_nvdec(
    src: SourceType,
    device_config: CUDAConfig,
    *,
    num_frames: int,
    post_processing_params: dict[str, int | bool] | None = None,
    use_cache: bool = True,
) -> Iterator[CUDABuffer]:
    """Batches of `num_frames` frames, decoded by NVDEC.  Errors: as `cuda_config`."""
    _missing("streaming_load_video_nvdec", _VIDEO)


def load_image_batch_nvjpeg(
    srcs: Sequence[str | bytes | memoryview],
    *,
    device_config: CUDAConfig,
    width: int,
    height: int,
    pix_fmt: str = "rgb",
) -> CUDABuffer:
    """Images, decoded by nvJPEG, as one array.  Errors: as `cuda_config`."""
    _missing("load_image_batch_nvjpeg", _IMAGE)


def decode_image_nvjpeg(
    src: str | bytes | memoryview | Sequence[bytes | memoryview],
    *,
    device_config: CUDAConfig | None = None,
    scale_width: int = -1,
    scale_height: int = -1,
    pix_fmt: str = "rgb",
) -> CUDABuffer:
    """An image, or several, decoded by nvJPEG.  Errors: as `cuda_config`."""
    _missing("decode_image_nvjpeg", _IMAGE)


def nv12_to_rgb(
    buffers: CUDABuffer, *, device_config: CUDAConfig, coeff: int = 1, sync: bool = False
) -> CUDABuffer:
    """Frames of NV12 as (frames, height, width, 3).  Errors: as `cuda_config`."""
    _missing("nv12_to_rgb", _VIDEO)


def nv12_to_bgr(
    buffers: CUDABuffer, *, device_config: CUDAConfig, coeff: int = 1, sync: bool = False
) -> CUDABuffer:
    """As `nv12_to_rgb`, in the other order.  Errors: as `cuda_config`."""
    _missing("nv12_to_bgr", _VIDEO)
