"""The C core of stoker."""

import threading
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Final, Literal, Self, TypedDict, Unpack, final

from typing_extensions import Buffer, CapsuleType

from ._stoker_av import *  # what it has for media

VERSION: Final[str]
END: Final[object]
EPOCH_END: Final[object]
TIMED_OUT: Final[object]
CANCELLED: Final[object]
ERROR_CODES: Final[dict[int, tuple[str, str]]]

class AudioOptions(TypedDict):
    seconds: float
    sample_rate: int
    channels: int
    where: str
    mask: bytes
    max_bytes: int
    parts: int
    lenient: bool

class ImageOptions(TypedDict):
    width: int
    height: int
    crop: str
    filter: str
    quality: str
    color: str
    flip: float
    scale: tuple[float, float]
    ratio: tuple[float, float]
    resize: int
    ignore_orientation: bool
    nearest_parts: int
    gray_parts: int
    parts: int
    max_pixels: int
    max_side: int

class StageStats(TypedDict):
    name: str
    kind: str
    concurrency: int
    running: int
    items: int
    failed: int
    substituted: int
    bytes: int
    busy_s: float
    wait_in_s: float
    wait_out_s: float

class QueueStats(TypedDict):
    name: str
    capacity: int
    len: int
    puts: int
    occupancy: float
    full: float
    empty: float

class Stats(TypedDict):
    stages: list[StageStats]
    queues: list[QueueStats]
    verdict: str
    bottleneck: str | None
    elapsed_s: float
    first_result_s: float | None
    results: int
    failed: int
    num_threads: int
    num_io_threads: int

class Failure(TypedDict):
    stage: str
    id: int | None  # of a sample
    epoch: int | None
    key: str | None
    code: int
    text: str
    errno: int
    cause: BaseException | None  # what Python raised
    index: int  # of the stage
    also: bool  # begins another failure that ended the run

@final
class Field:
    """An array of a batch, whose memory it shares."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...

@final
class Batch:
    """n samples, field by field."""

    @property
    def id(self) -> Field: ...
    @property
    def image(self) -> Field: ...
    @property
    def label(self) -> Field: ...
    @property
    def substituted(self) -> Field: ...
    @property
    def key(self) -> list[str | None]: ...
    @property
    def size(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def index(self) -> int: ...
    def fields(self) -> tuple[str, ...]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Sample:
    """One sample between stages, or of a pipeline without a batch stage."""

    key: str | None
    label: Any
    data: Any
    def __new__(
        cls,
        data: Any = None,
        *,
        id: int = -1,
        key: str | None = None,
        label: Any = None,
        epoch: int = 0,
    ) -> Self: ...
    @property
    def id(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def parts(self) -> tuple[Any, ...]: ...
    @parts.setter
    def parts(self, parts: Iterable[Any], /) -> None: ...

@final
class Source:
    def classes(self) -> list[str]: ...
    def count(self) -> int: ...
    def key(self, id: int, /) -> str | None: ...
    def memory(self) -> int: ...

@final
class Op:
    @property
    def name(self) -> str: ...
    @property
    def takes(self) -> str: ...
    @property
    def adds(self) -> tuple[str, ...]: ...

@final
class Plan:
    def source(self, source: Source, /) -> None: ...
    def pipe(
        self,
        op: Op,
        *,
        name: str | None,
        concurrency: int,
        order: str,
        on_error: str,
        max_failures: int,
        max_failure_rate: float,
        shared_limit: bool = False,
        group: int = 0,
    ) -> None: ...
    def foreign_source(self, source: Source, group: int, /) -> None: ...
    def limit(self, max_failures: int, max_failure_rate: float, /) -> None: ...
    def route(self, paths: Sequence[Plan], name: str, output_order: str, /) -> None: ...
    def port(
        self,
        name: str,
        concurrency: int,
        on_error: str,
        max_failures: int,
        max_failure_rate: float,
        shared_limit: bool,
        group: int,
        in_order: bool,
    ) -> None: ...
    def port_source(self, group: int, /) -> None: ...
    def port_merge(self, inputs: Sequence[Plan], group: int, /) -> None: ...
    def merge(self, inputs: Sequence[Plan], arrival: bool, /) -> None: ...
    def batch(self, n: int, *, drop_last: bool, keep_empty: bool) -> None: ...
    def unbatch(self) -> None: ...
    def sink(self, buffer_size: int, /) -> None: ...
    def check(self) -> None: ...
    def length(self) -> int: ...
    def start(self, num_threads: int, epoch_ends: bool) -> Run: ...

@final
class Run:
    def next(self, timeout: float | None, grow: Callable[[int], None] | None, /) -> Any: ...
    def last(self, max: int, /) -> list[Any]: ...
    def look(self) -> None: ...
    def close(self) -> None: ...
    def cancel(self) -> None: ...
    def ended(self) -> bool: ...
    def stop(self, timeout: float | None, /) -> bool: ...
    def stats(self) -> Stats: ...
    def figures(
        self, before: object, /
    ) -> tuple[tuple[list[tuple[int, Any]], list[tuple[int, Any]]], object]: ...
    def failures(self) -> list[Failure]: ...
    def causes(self) -> list[Failure]: ...

@final
class Slip:
    @property
    def value(self) -> Any: ...
    @property
    def id(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    def set(self, value: object, /) -> None: ...
    def release(self) -> None: ...
    def restore(self, value: object, /) -> None: ...
    def route(self, path: int, /) -> None: ...
    def fail(self, exception: BaseException, fatal: bool, /) -> None: ...

@final
class Port:
    def take(self, input: int, max: int, /) -> list[Slip] | object | None: ...
    def slip(self, value: object, id: int, epoch: int, /) -> Slip | object: ...
    def put(self, slips: list[Slip], busy: float, /) -> int: ...
    def run(
        self, call: Callable[[Any], Any], slips: list[Slip], routes: bool, /
    ) -> tuple[int, Any, Any, Any]: ...
    def mark(self, epoch: int, /) -> int: ...
    def close(self) -> None: ...

def port(run: Run, stage: int, /) -> Port: ...
def notify(run: Run, group: int, fd: int, /) -> None: ...
def hear(fd: int, /) -> bool: ...

class Results:
    _run: Run | None
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

@final
class Held:
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Zip:
    def entries(self) -> list[tuple[str, str, bool, int, int]]: ...
    def locate(self, number: int, /) -> int: ...
    def unpack(self, number: int, data: Buffer = ..., /) -> Field | memoryview: ...

def zip_open(
    source: Buffer | Callable[[int, int], Buffer],
    size: int,
    max_ratio: int,
    max_directory: int,
    /,
) -> Zip: ...
def npy_header(data: Buffer, /) -> tuple[str, tuple[int, ...], str, int, Held]: ...
def memory(size: int, /) -> Field: ...
@final
class TarIterator:
    """Members of an archive."""

    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[str, Any]: ...

@final
class Stream:
    """Blocks of bytes, unpacked."""

    @property
    def name(self) -> str | None: ...
    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...

def tar(
    src: Any,
    *,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
    max_member_bytes: int | None = None,
    max_header_bytes: int | None = None,
    strict: bool = True,
    timeout: float | None = None,
) -> TarIterator: ...
def stream(
    src: Any,
    *,
    max_uncompressed_bytes: int | None = None,
    max_ratio: int | None = None,
    timeout: float | None = None,
) -> Stream: ...
def load_wav(
    data: Buffer | str | PathLike[str] | PathLike[bytes],
    time_offset_seconds: float | None = None,
    duration_seconds: float | None = None,
    *,
    max_bytes: int | None = None,
) -> Field: ...
def wav_header(data: Buffer | str | PathLike[str] | PathLike[bytes], /) -> dict[str, Any]: ...
def plan() -> Plan: ...
def field_of(data: Buffer, dtype: str, shape: tuple[int, ...], readonly: bool, /) -> Field: ...
def batch_of(
    epoch: int, index: int, keys: list[str | None], fields: dict[str, Field | list[str]], /
) -> Batch: ...
def sample_of(
    parts: tuple[Any, ...], id: int, epoch: int, key: str | None, label: Any, followed: bool, /
) -> Sample: ...
def lane(
    run: Run, group: int, grow: Callable[[int], None], thread: threading.Thread | None = None
) -> None: ...
def op_python(
    kind: str,
    callable: object,
    report: Callable[[BaseException, object, int], object] | None,
    text: str,
    takes: str | None = None,
    taker: str = "",
) -> Op: ...
def op_concat(paths: int, /) -> Op: ...
def op_collate(n: int, drop_last: bool) -> Op: ...
def iterable_source(iterable: object, continuous: bool, text: str) -> Source: ...
def source_finish(source: Source, /) -> None: ...
def dir_source(
    *,
    path: bytes,
    labels: bool,
    pattern: str | None,
    flat: bool,
    no_follow: bool,
    order: tuple[bool, int, int, int, int],  # shuffle, seed, rank, world_size, epochs
) -> Source: ...
def list_source(
    *,
    parts: list[tuple[bytes, list[bytes]]],
    columns: list[tuple[bytes, list[bytes] | Buffer]],
    order: tuple[bool, int, int, int, int],  # shuffle, seed, rank, world_size, epochs
) -> Source: ...
def shards_source(
    *,
    kind: Literal["tar", "zip"],
    paths: list[bytes],
    files: list[tuple[bytes, bytes]],  # names of fields, and endings with '|' between
    columns: list[tuple[bytes, bytes, bool]],  # the same, and whether it is text
    samples_per_shard: int,  # 0: not known
    order: tuple[bool, int, int, int, int],  # shuffle, seed, rank, world_size, epochs
) -> Source: ...
def op_read(max_bytes: int = 0) -> Op: ...
def op_load_npy(parts: int) -> Op: ...
def op_decode_wav(**options: Unpack[AudioOptions]) -> Op: ...
def op_decode_video(
    frames: int, stride: int, where: str, repeat: bool, max_bytes: int, /, **picture: Unpack[ImageOptions]
) -> Op: ...
def op_isolate(op: Op, /, timeout: float) -> Op: ...
def op_decode_audio(**options: Unpack[AudioOptions]) -> Op: ...
def op_decode_image(**options: Unpack[ImageOptions]) -> Op: ...
def op_normalize(
    *,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float,
    dtype: str,
    layout: str,
    field: bytes,
) -> Op: ...
def op_color_jitter(
    *,
    brightness: tuple[float, float],
    contrast: tuple[float, float],
    saturation: tuple[float, float],
    hue: tuple[float, float],
    keep: float,
) -> Op: ...
def op_grayscale(*, keep: float) -> Op: ...
def op_erase(
    *,
    keep: float,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    value: tuple[int, ...],
    random: bool,
) -> Op: ...
def op_blur(*, kernel_size: tuple[int, int], sigma: tuple[float, float], keep: float) -> Op: ...
def op_rotate(
    *,
    degrees: tuple[float, float],
    filter: str,
    expand: bool,
    off_center: bool,
    center: tuple[float, float],
    fill: tuple[int, ...],
    mask_parts: int,
    mask_fill: tuple[int, ...],
    keep: float,
) -> Op: ...
def op_mixup(
    *, alpha: float, keep: float, num_classes: int, layout: str, field: bytes, label: bytes
) -> Op: ...
def op_cutmix(
    *, alpha: float, keep: float, num_classes: int, layout: str, field: bytes, label: bytes
) -> Op: ...
def op_pad(
    *,
    padding: tuple[int, int, int, int],
    mode: str,
    fill: tuple[int, ...],
    mask_parts: int,
    mask_fill: tuple[int, ...],
) -> Op: ...
def decode_image(data: Buffer, seed: int, /, **options: Unpack[ImageOptions]) -> Field: ...
def trace_start(fd: int, buffer_size: int, process_name: str | None, /) -> None: ...
def trace_stop() -> int: ...
def trace_on() -> bool: ...
def trace_begin(name: str, /) -> int: ...
def trace_end(slice: int, /) -> None: ...
def trace_counter(number: int, value: float, /) -> None: ...
def trace_thread(name: str, /) -> None: ...
