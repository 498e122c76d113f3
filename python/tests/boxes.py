"""Where the sizes are in files of MP4, RIFF (AVI, WAV) and Matroska, for tests that make them wrong."""

from __future__ import annotations

from collections.abc import Iterator

NESTS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"udta", b"dinf"}
# Segment, SeekHead, Info, Tracks, TrackEntry, Video, Cluster, Cues (RFC 8794 and 9559).
MASTERS = {0x18538067, 0x114D9B74, 0x1549A966, 0x1654AE6B, 0xAE, 0xE0, 0x1F43B675, 0x1C53BB6B}


def mp4(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Boxes of ISO 14496-12: (type, where, size); those inside of others behind these."""
    end = len(data) if end is None else end
    while at + 8 <= end:
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        yield kind, at, size
        if kind in NESTS:
            yield from mp4(data, at + 8, at + size)
        at += size


def riff(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int, int]]:
    """Chunks: (name, where, size without the 8 bytes in front)."""
    end = len(data) if end is None else end
    while at + 8 <= end:
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        yield name, at, size
        if name in (b"RIFF", b"LIST"):
            yield from riff(data, at + 12, at + 8 + size)
        at += 8 + size + size % 2


def _number(data: bytes, at: int) -> tuple[int, int]:
    """How many bytes a variable number has, and the number with its marker."""
    n = 9 - data[at].bit_length()
    return n, int.from_bytes(data[at : at + n], "big")


def matroska(data: bytes, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Elements: (id, where their size is, its bytes, size)."""
    end = len(data) if end is None else end
    while at < end:
        n, name = _number(data, at)
        width, size = _number(data, at + n)
        size -= 1 << (7 * width)
        yield name, at + n, width, size
        inside = at + n + width
        if name in MASTERS:
            yield from matroska(data, inside, min(end, inside + size))
        at = inside + size


def put(data: bytes, at: int, value: int, width: int, order: str = "big") -> bytes:
    """The same with another number there."""
    out = bytearray(data)
    out[at : at + width] = (value % (1 << (8 * width))).to_bytes(width, order)
    return bytes(out)


def wrong(size: int) -> list[int]:
    """Sizes that it is not."""
    return sorted({0, 1, 7, 8, size // 2, size - 1, size + 1, size * 2, 2**31 - 1, 2**31, 2**32 - 1} - {size, -1})


def wrong_sizes(name: str, data: bytes) -> Iterator[tuple[object, bytes]]:
    """(what is wrong, the file with that size)."""
    if name.endswith((".mp4", ".m4a", ".avif")):
        for kind, at, size in mp4(data):
            for other in wrong(size):
                yield (kind, other), put(data, at, other, 4)
    elif name.endswith((".mkv", ".webm")):
        for element, at, width, size in matroska(data):
            limit = 1 << (7 * width)
            for other in sorted({0, size // 2, size - 1, size + 1, size * 2, limit - 2, limit - 1} - {size}):
                if 0 <= other < limit:
                    yield (hex(element), other), put(data, at, limit | other, width)
    else:
        for kind, at, size in riff(data):
            for other in wrong(size):
                yield (kind, other), put(data, at + 4, other, 4, "little")
