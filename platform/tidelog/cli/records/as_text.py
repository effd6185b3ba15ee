r"""Records as text: kcat's format strings, and the escapes in them and in delimiters.

    compile_format(r"%t [%p] %o: %k=%s\n")   # a function from a batch of records to bytes

Tokens, as kcat's: %s value, %S its length, %R its length as 4 bytes (big endian), %k key, %K its length,
%t topic, %p partition, %o offset, %T timestamp (ms since the epoch, UTC), %h headers (name=value, with commas),
%% a percent sign. The length of null is -1. Escapes: \n \r \t \0 \\ and \xHH.
"""

import re
import struct
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.cli.records.escapes import unescape

NULL_TEXT = b"NULL"

_TOKEN = re.compile(r"%(.?)", re.DOTALL)

Column = Callable[[pa.RecordBatch], Iterable[bytes]]
Formatter = Callable[[pa.RecordBatch], bytes]


def compile_format(text: str, *, nulls: bool = False) -> Formatter:
    """The function that a format string stands for; `nulls`: null reads NULL, not nothing.

    It takes batches with the columns of `tidelog.log.delta.schema.RECORDS`, and headers where the format shows them.
    Raises ValueError for an unknown token or escape.
    """
    tokens = _tokens(NULL_TEXT if nulls else b"")
    literals, codes = _TOKEN.split(text)[::2], _TOKEN.findall(text)
    columns: list[Column] = []
    waiting = unescape(literals[0])
    for code, literal in zip(codes, literals[1:], strict=True):
        if code == "%":
            waiting += b"%" + unescape(literal)
            continue
        if code not in tokens:
            raise ValueError(f"%{code} is no token; there are %{', %'.join(tokens)} and %%")
        columns += [_constant(waiting), tokens[code]] if waiting else [tokens[code]]
        waiting = unescape(literal)
    return _joined([*columns, _constant(waiting)] if waiting else columns)


def needs_headers(text: str) -> bool:
    """Whether a format string shows headers, so that they have to be read."""
    return "h" in _TOKEN.findall(text)


def _joined(columns: list[Column]) -> Formatter:
    def formatted(batch: pa.RecordBatch) -> bytes:
        rows = zip(range(batch.num_rows), *(column(batch) for column in columns), strict=False)
        return b"".join(chain.from_iterable(row[1:] for row in rows))

    return formatted


def _constant(value: bytes) -> Column:
    return lambda _: repeat(value)


def _tokens(null: bytes) -> dict[str, Column]:
    return {
        "s": lambda b: _filled(b.column("value"), null),
        "S": lambda b: (b"%d" % n for n in _lengths(b.column("value"))),
        "R": lambda b: (struct.pack(">i", n) for n in _lengths(b.column("value"))),
        "k": lambda b: _filled(b.column("key"), null),
        "K": lambda b: (b"%d" % n for n in _lengths(b.column("key"))),
        "t": lambda b: (name.encode() for name in b.column("topic").to_pylist()),
        "p": lambda b: (b"%d" % n for n in b.column("partition").to_pylist()),
        "o": lambda b: (b"%d" % n for n in b.column("offset").to_pylist()),
        "T": lambda b: (b"%d" % n for n in timestamps_ms(b)),
        "h": lambda b: (_headers(pairs, null) for pairs in b.column("headers").to_pylist()),
    }


def timestamps_ms(batch: pa.RecordBatch) -> list[int]:
    """The records' timestamps, ms since the epoch, rounded down."""
    return [us // 1000 for us in batch.column("timestamp").cast(pa.int64()).to_pylist()]


def _filled(column: pa.Array, null: bytes) -> Iterable[bytes]:
    values: list[bytes] = (pc.fill_null(column, null) if column.null_count else column).to_pylist()
    return values


def _lengths(column: pa.Array) -> list[int]:
    lengths: list[int] = pc.fill_null(pc.binary_length(column), -1).to_pylist()
    return lengths


def _headers(pairs: list[dict[str, Any]] | None, null: bytes) -> bytes:
    """kcat's form of headers: `name=value` with commas between."""
    return b",".join(
        pair["key"].encode() + b"=" + (null if pair["value"] is None else pair["value"]) for pair in pairs or ()
    )
