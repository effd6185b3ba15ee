"""How Parquet writes a segment's columns: codecs, dictionaries, encodings, statistics."""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import schema
from tidelog.log.segments.noted import NotedPart

# A dictionary of keys is worth making where they repeat: where at most half of the first ones are different.
_SAMPLED_KEYS = 1_024
_FEWEST_SAMPLED_KEYS = 101
# Columns of which the encoding leaves nothing to compress: a codec that is started for them costs a small segment
# time. Not so timestamps, which come in bursts and in whole milliseconds.
_UNCOMPRESSED = ("position", "timestamp_type")
_COMPRESSED = ("key", "value", "headers.list.element.key", "headers.list.element.value", "timestamp")
# Bytes of a page before it is compressed. Pages of Parquet's usual 1 MiB leave the second-level cache on their way
# through the codec: a quarter of it makes writing an eighth cheaper, and files 1 % larger.
_PAGE_BYTES = 256 * 1024
# What readers ask of each segment's statistics: whether values are to be derived.
_ASKED = frozenset(field.name for field in schema.TYPED)


def options_of(columns: pa.Schema, codec: Codec, first: pa.Table, *, lasting: bool) -> dict[str, Any]:
    """How Parquet is written: arguments of `ParquetWriter`. `first`: the first records, which choose it.

    `lasting`: whether the file is a rewrite of others, and so worth more time.
    """
    repeats = keys_repeat(first)
    if columns is schema.SEGMENT:
        return _options(codec, repeats)
    packed, others = _typed_leaves(columns)
    return _lasting_options(codec, repeats, (*packed, *others)) if lasting else _options(codec, repeats, packed, others)


@cache
def _options(
    codec: Codec, keys_repeat: bool, packed: tuple[str, ...] = (), others: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Options of a segment; `packed` and `others`: its further columns, by the paths of their leaves.

    Whole numbers and times are packed by their differences: written in three quarters of a dictionary's time. A codec
    for that and bounds of values take time that staging has not: rewrites have them.
    """
    compressed = (*_COMPRESSED, *others)
    return {
        "compression": {**dict.fromkeys(compressed, codec.name), **dict.fromkeys((*_UNCOMPRESSED, *packed), "none")},
        "compression_level": None if codec.level is None else dict.fromkeys(compressed, codec.level),
        "use_dictionary": ["timestamp_type", *(["key"] if keys_repeat else []), *others],
        "column_encoding": dict.fromkeys(("position", "timestamp", *packed), "DELTA_BINARY_PACKED"),
        "write_statistics": ["position", "timestamp", *(name for name in packed if name in _ASKED)],
        "store_schema": False,
        "data_page_size": _PAGE_BYTES,
        "write_page_checksum": True,
    }


@cache
def _lasting_options(codec: Codec, keys_repeat: bool, typed: tuple[str, ...]) -> dict[str, Any]:
    """Options of a rewritten segment of a typed topic: each of its further columns has a dictionary, and bounds."""
    plain = _options(codec, keys_repeat, (), typed)
    return {**plain, "write_statistics": [*plain["write_statistics"], *typed]}


@lru_cache(64)
def _typed_leaves(columns: pa.Schema) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All leaves but those of a plain topic's columns, as Parquet names them: whole numbers and times, and others."""
    packed: list[str] = []
    others: list[str] = []
    for field in columns:
        if field.name not in schema.SEGMENT.names:
            for path, kind in _leaves(field):
                (packed if _is_whole(kind) else others).append(path)
    return tuple(packed), tuple(others)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _leaves(field: pa.Field, path: str = "") -> Iterator[tuple[str, pa.DataType]]:
    at, kind = path + field.name, field.type
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves(inner, f"{at}.")
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_field.with_name("key"), f"{at}.key_value.")
        yield from _leaves(kind.item_field.with_name("value"), f"{at}.key_value.")
    elif pa.types.is_list(kind):
        yield from _leaves(kind.value_field.with_name("element"), f"{at}.list.")
    else:
        yield at, kind


def keys_repeat(records: pa.Table) -> bool:
    """Whether a dictionary of their keys is worth making."""
    if records.num_rows < _FEWEST_SAMPLED_KEYS:
        return False
    sample = records.column("key").slice(0, _SAMPLED_KEYS)
    if sample.null_count == len(sample):
        return False
    return bool(2 * pc.count_distinct(sample, mode="all").as_py() <= len(sample))


def noted_keys_repeat(parts: Sequence[NotedPart], count: int) -> bool:
    """The same of `count` records in several parts."""
    if count < _FEWEST_SAMPLED_KEYS or all(_all_keyless(part) for part in parts):
        return False
    sample: list[bytes | None] = []
    for part in parts:
        sample += part.sampled_keys(_SAMPLED_KEYS - len(sample))
    distinct = set(sample)
    return distinct != {None} and 2 * len(distinct) <= len(sample)


def _all_keyless(part: NotedPart) -> bool:
    return all(piece.notes.keyless == piece.notes.records for piece in part.pieces)
