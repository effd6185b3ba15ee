"""A small segment written in native code, byte for byte as `tidelog.log.segments.tiny_parquet` writes it."""

from collections.abc import Callable, Sequence

SOURCE: str
"""The SHA-256 of the sources that this was built from, in hex."""

def crc32(data: bytes | memoryview, by_tables: bool = False) -> int:
    """As `zlib.crc32`, several times as fast; `by_tables`: as on a processor without carry-less products."""

def segment(
    parts: Sequence[Callable[[int], None] | tuple[int, ...]],
    names: tuple[bytes, ...],
    head: bytes,
    tail: bytes,
    seal_of: Callable[[memoryview], bytes],
    codec: int,
    compress: Callable[[memoryview], bytes] | None,
    least: int,
) -> tuple[bytes, int, int] | None:
    """A whole file, and its records' smallest and largest timestamp (us since the epoch); None for what is not plain.

    `parts`: the methods `_export_to_c` of record batches with key, value, headers, timestamp and timestamp_type, or
    what `tidelog.log.segments.noted.Notes.part` says; the records in order. Those with headers, or with several types
    of timestamps, are not plain. `names`, `head`, `tail`: what the footer says of the columns and of the file, see
    `tiny_footer`; `seal_of`: the seal before it. `codec`: its number in Parquet; `compress`: None for none; columns of
    less than `least` bytes are not compressed.
    """
