"""Options of demuxing and decoding, as values."""

from __future__ import annotations

from collections.abc import Mapping

from .._check import choice, flag, integer, number  # noqa: F401
from .._value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DecodeConfig", "DemuxConfig", "decode_config", "demux_config"]


def options(name: str, value: Mapping[str, object] | None) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if isinstance(value, tuple):  # as the config has it
        value = dict(value)
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of str to str, not {type(value).__name__}")
    return tuple((str(key), str(text)) for key, text in value.items())


def flat(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(text for pair in pairs for text in pair)


def text(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


class DemuxConfig(Value):
    """What `demux_config` makes."""

    __slots__ = ("format", "format_options", "buffer_size", "protocols", "timeout", "max_bytes")

    format: str | None
    format_options: tuple[tuple[str, str], ...]
    buffer_size: int
    protocols: tuple[str, ...] | None
    timeout: float | None
    max_bytes: int

    def __init__(
        self,
        format: str | None = None,
        format_options: Mapping[str, str] | None = None,
        buffer_size: int = 8096,
        *,
        protocols: Sequence[str] | None = None,
        timeout: float | None = 60.0,
        max_bytes: int = 4 << 30,
    ) -> None:
        if isinstance(protocols, str):
            raise TypeError('protocols must be a list of names, like ["file", "http", "tcp"]')
        names = None if protocols is None else tuple(protocols)
        for name in names or ():
            if not isinstance(name, str) or not name or "," in name:
                raise ValueError(f"protocols: {name!r} is not the name of a protocol")
        self._set(
            format=text("format", format),
            format_options=options("format_options", format_options),
            buffer_size=integer("buffer_size", buffer_size, 1, 1 << 28),
            protocols=names or None,
            timeout=None if timeout is None else number("timeout", timeout, 0.0),
            max_bytes=integer("max_bytes", max_bytes, 1, 2**62),
        )


class DecodeConfig(Value):
    """What `decode_config` makes."""

    __slots__ = ("decoder", "decoder_options", "max_pixels", "max_bytes")

    decoder: str | None
    decoder_options: tuple[tuple[str, str], ...]
    max_pixels: int
    max_bytes: int

    def __init__(
        self,
        decoder: str | None = None,
        decoder_options: Mapping[str, str] | None = None,
        *,
        max_pixels: int = 1 << 28,
        max_bytes: int = 4 << 30,
    ) -> None:
        self._set(
            decoder=text("decoder", decoder),
            decoder_options=options("decoder_options", decoder_options),
            max_pixels=integer("max_pixels", max_pixels, 1, 2**62),
            max_bytes=integer("max_bytes", max_bytes, 1, 2**62),
        )


def demux_config(
    format: str | None = None,
    format_options: Mapping[str, str] | None = None,
    buffer_size: int = 8096,
    *,
    protocols: Sequence[str] | None = None,
    timeout: float | None = 60.0,
    max_bytes: int = 4 << 30,
) -> DemuxConfig:
    """Options of demuxing.

    format: one of FFmpeg's demuxers; by default it is found out from the bytes.
    format_options: options of that demuxer, and of the protocols: of `https` {"tls_verify": "1"}, without which FFmpeg
        takes any certificate, and {"ca_file": path}.
    buffer_size: of reads, in bytes.
    protocols: FFmpeg's protocols that may be used, `["file", "http", "https", "tcp", "tls"]`; by default none, so
        that nothing but the input itself is opened, and addresses are not inputs.
    timeout: seconds for opening, and for each packet, after which `TimeoutError` is raised; None: no limit.  read() of
        a file object cannot be interrupted: neither this nor close() ends it before it comes back.
    max_bytes: of the packets of one call; more are a `LimitError`.
    """
    return DemuxConfig(
        format, format_options, buffer_size, protocols=protocols, timeout=timeout, max_bytes=max_bytes
    )


def decode_config(
    decoder: str | None = None,
    decoder_options: Mapping[str, str] | None = None,
    *,
    max_pixels: int = 1 << 28,
    max_bytes: int = 4 << 30,
) -> DecodeConfig:
    """Options of decoding.

    decoder: one of FFmpeg's; by default its first for the codec.
    decoder_options: options of that decoder; it has one thread unless `{"threads": "4"}` says otherwise.
    max_pixels: of one frame; larger ones are not decoded.
    max_bytes: of the frames that one call gives, and of those that it keeps before filters until it knows which
        they are, where packets fail; more are a `LimitError`.  4 GiB is what `demux_config` has for
        packets: 23 s of 1920 x 1080 pixels at 30 frames a second, three hours of stereo; some MB of black frames
        would be more.  `Decoder`, which gives frames in parts, and readers of clips have no limit of all.
    """
    return DecodeConfig(decoder, decoder_options, max_pixels=max_pixels, max_bytes=max_bytes)
