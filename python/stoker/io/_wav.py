"""WAV files, without FFmpeg."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _stoker
from .._stoker import load_wav

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from typing_extensions import Buffer

__all__ = ["WAVHeader", "load_wav", "parse_wav"]


@dataclass(frozen=True)
class WAVHeader:
    """What a WAV file says of itself."""

    audio_format: int  #: 1 PCM, 3 float; others cannot be loaded.  Of an extensible format that of its GUID
    num_channels: int
    sample_rate: int  #: frames a second
    byte_rate: int  #: bytes a second
    block_align: int  #: bytes of a frame, which has one sample of each channel
    bits_per_sample: int  #: as stored
    data_size: int  #: bytes of samples
    valid_bits: int  #: of bits_per_sample; fewer where the format is extensible and says so
    channel_mask: int  #: which speakers the channels are for (dwChannelMask); 0: not said
    container: str  #: "RIFF", "RF64" (also of BW64) or "W64"
    extensible: bool  #: WAVE_FORMAT_EXTENSIBLE
    unsized: bool  #: whoever wrote it did not know how long it would be: data reach to the end
    dtype: str | None  #: of what load_wav gives; None: it cannot
    data_offset: int  #: where the samples begin
    num_frames: int  #: 0 where dtype is None
    duration_seconds: float


def parse_wav(data: Buffer | str | PathLike[str] | PathLike[bytes]) -> WAVHeader:
    """The header of a WAV file.

    `data`: its bytes (anything with the buffer protocol: one dimension, contiguous), or its path, of which
    only the headers are read.

    Raises MalformedError (a ValueError) for a broken file, UnsupportedFormatError (a ValueError) for
    what is no WAV file.  Formats that load_wav does not take are no error here.
    """
    return WAVHeader(**_stoker.wav_header(data))
