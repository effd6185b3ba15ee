"""Record batches of every kind, most of them broken, as a seed has it; and what two readers make of them."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from support.record_batches import built, packed, padded, record_of, stored, varint

from tidelog.broker.records.aiokafka_records import AiokafkaRecords
from tidelog.broker.records.batches import HEADER, check, header_of
from tidelog.broker.records.batches import _check as checked_in_python
from tidelog.broker.records.columns import LAST_MS, Columns, RecordCodec, RecordRules
from tidelog.log.base.errors import TidelogError
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import schema
from tidelog.log.segments.noted import NotedPiece, NotedRecords
from tidelog.log.segments.writer import write_noted_segment, write_small_segment

NOW_MS = 1_800_000_000_000
RULES = (
    None,
    RecordRules("flights", False, True, 0, 2**62),
    RecordRules("flights", True, True, NOW_MS - 1000, NOW_MS + 1000),
    RecordRules("flights", True, False, 0, 0, 300),
)
# What a byte is set to: ends of numbers of one byte and of more.
_BYTES = (0, 1, 2, 3, 0x3F, 0x40, 0x7E, 0x7F, 0x80, 0x81, 0xC0, 0xFE, 0xFF)
_NUMBERS = (-1, 0, 1, 2, 5, 63, 64, -2, 1000, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
# Header fields, where they begin, and their format.
_FIELDS = (
    (0, ">q"), (8, ">i"), (16, ">b"), (17, ">I"), (21, ">h"), (23, ">i"),
    (27, ">q"), (35, ">q"), (43, ">q"), (51, ">h"), (53, ">i"), (57, ">i"),
)  # fmt: skip
_KEYS = ("", "h", "ключ", "\ud7ff", "𝄞", "x" * 70)
_NO_TEXTS = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"a\x80")
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@dataclass
class Strange:
    """Batches as a seed has them."""

    random: random.Random

    def records(self) -> list[Record]:
        """Of one length or of many, with and without headers."""
        rng = self.random
        count = rng.choice((1, 1, 2, 3, 5, 9, 30))
        like = self._record(rng.random() < 0.3)
        alike = rng.random() < 0.4
        return [like if alike else self._record(rng.random() < 0.2) for _ in range(count)]

    def batches(self) -> list[bytes]:
        """Some batches, more than half of them with something wrong in them."""
        return [self.batch() for _ in range(self.random.choice((1, 1, 2, 3)))]

    def batch(self) -> bytes:
        """A batch whose checksum is right."""
        rng = self.random
        records, codec = self.records(), rng.choice((0, 0, 0, 1, 2, 3, 4))
        whole = built(records, rng.choice((0, codec)))
        kind = rng.random()
        if kind < 0.4:
            return whole
        body = bytearray(whole[HEADER.size :])
        count = len(records)
        if kind < 0.45:
            body, count = bytearray(self._odd_record()), 1
        elif kind < 0.55:
            body += self._odd_record()
            count += rng.choice((0, 1))
        else:
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                self._mutate(body)
        if rng.random() < 0.1:
            count = rng.choice((count + 1, count - 1, *_NUMBERS)) & 0x7FFFFFFF
        made = bytearray(packed(bytes(body), header_of(whole).codec, count, last_delta=count - 1))
        if rng.random() < 0.3:
            struct.pack_into(">q", made, 27, rng.choice((NOW_MS, *(n for n in _NUMBERS if -(2**63) <= n < 2**63))))
        if rng.random() < 0.05:
            struct.pack_into(">h", made, 21, header_of(made).codec | rng.choice((8, 16, 32, 64, -(2**15))))
        return bytes(made)

    def unchecked(self) -> bytes:
        """A whole batch as `split` gives it, in which a field of its header may be any."""
        made = bytearray(self.batch())
        for _ in range(self.random.choice((0, 1, 1, 2))):
            at, form = self.random.choice(_FIELDS)
            bits = 8 * struct.calcsize(form)
            number = self.random.choice(_NUMBERS) & (1 << bits) - 1
            made[at : at + bits // 8] = number.to_bytes(bits // 8)
        return bytes(made)

    def _record(self, has_headers: bool) -> Record:
        rng = self.random
        ms = rng.choice((NOW_MS, NOW_MS, NOW_MS + rng.randrange(2000), -1, 0, rng.randrange(2**42)))
        headers = [(rng.choice(_KEYS), self._text()) for _ in range(rng.randrange(4))] if has_headers else []
        return ms, self._text(), self._text(), headers

    def _text(self) -> bytes | None:
        size = self.random.choice((None, 0, 1, 5, 63, 64, 100))
        return None if size is None else self.random.randbytes(size)

    def _odd_record(self) -> bytes:
        """A record one part of which takes more bytes than it needs, or says something else than is there."""
        rng = self.random
        number = rng.choice((varint(rng.choice(_NUMBERS)), padded(rng.choice((-1, 0, 1)), rng.randrange(1, 12))))
        text = rng.choice((number, padded(1, rng.randrange(1, 7)) + b"x", varint(3) + b"abc"))
        key = rng.choice((*_NO_TEXTS, "ключ".encode(), b"\xf0\x9f\x98\x80"))
        headers = varint(1) + varint(len(key)) + key + varint(-1)
        part = rng.choice(({"key": text}, {"value": text}, {"headers": text}, {"headers": headers}, {"ms": number}))
        if rng.random() < 0.2:
            part = {"size": lambda size: padded(size, rng.randrange(1, 7))}
        return record_of(rng.choice((0, 0, 1, number)), **part)

    def _mutate(self, body: bytearray) -> None:
        rng = self.random
        at = rng.randrange(len(body) + 1)
        # Numbers are near the begin of a record, of which the first begins the body.
        at = min(at, len(body) - 1, *((rng.randrange(12),) if rng.random() < 0.5 else ()))
        kind = rng.random()
        if at < 0 or kind < 0.1:
            body[max(at, 0) : max(at, 0)] = rng.randbytes(rng.randrange(1, 4))
        elif kind < 0.3:
            body[at] ^= 1 << rng.randrange(8)
        elif kind < 0.6:
            body[at] = rng.choice(_BYTES)
        elif kind < 0.7:
            del body[at : at + rng.choice((1, 1, 2, 5))]
        elif kind < 0.75:
            del body[at:]
        elif kind < 0.9:
            body[at : at + 1] = varint(rng.choice(_NUMBERS))
        else:
            body[at : at + 1] = padded(rng.choice((-1, 0, 1, body[at] >> 1)), rng.randrange(2, 11))


def outcome(columns: Columns) -> tuple[object, ...]:
    """What was read and refused, as what can be compared."""
    columns.table.validate(full=True)
    refused = {at: (type(e), str(e), getattr(e, "record_errors", None)) for at, e in sorted(columns.refused.items())}
    return columns.table.schema, columns.table.combine_chunks().to_pylist(), list(columns.counts), refused


def verdict(test: object, batch: bytes, most_bytes: int) -> tuple[type, str] | None:
    """What a check refuses a batch for."""
    try:
        if test is check:
            check(header_of(batch), batch, topic="flights", most_bytes=most_bytes)
        else:
            checked_in_python(header_of(batch), batch, "flights", most_bytes)
    except TidelogError as e:
        return type(e), str(e)
    return None


@dataclass
class Compared:
    """What a comparison saw: batches that were read, that were noted, that passed the check, that were written."""

    batches: int = 0
    noted: int = 0
    taken: int = 0
    refused: int = 0
    good: int = 0
    encoded: int = 0
    differences: list[str] = field(default_factory=list)


def compare(seed: int, batches: int, codec: RecordCodec) -> Compared:
    """Read, check and write strange batches by a codec and by aiokafka's classes, and compare."""
    found, oracle = Compared(), AiokafkaRecords(many_rows=1 << 30)
    for case in _cases(seed):
        if found.batches >= batches or len(found.differences) > 9:
            return found
        strange = Strange(random.Random(case))
        some, rules = strange.batches(), strange.random.choice(RULES)
        ours, theirs = codec.columns(some, rules), oracle.columns(some, rules)
        if outcome(ours) != outcome(theirs):
            found.differences.append(f"{case}: read\n{outcome(ours)}\n{outcome(theirs)}\n{some!r}")
        found.batches += len(some)
        found.refused += len(theirs.refused)
        found.taken += len(some) - len(theirs.refused)
        _note(case, some, rules or RULES[1], codec, oracle, found)
        whole, most_bytes = strange.unchecked(), strange.random.choice((100, 1 << 20))
        said = verdict(checked_in_python, whole, most_bytes)
        if verdict(check, whole, most_bytes) != said:
            found.differences.append(f"{case}: checked, {said}\n{whole!r}")
        found.good += said is None
        if strange.random.random() < 0.2:
            _write(case, strange, codec, oracle, found)
    return found


def _cases(seed: int) -> Iterator[str]:
    case = 0
    while True:
        yield f"{seed}-{case}"
        case += 1


def as_records(table: pa.Table) -> pa.Table:
    """A segment's columns of what was read, all of which has a timestamp."""
    micros = pa.chunked_array([pa.array(table["timestamp"].to_numpy() * 1000).cast(schema.TIMESTAMP)])
    kinds = pa.chunked_array([schema.alike("timestamp_type", schema.CREATE_TIME, table.num_rows)])
    columns = [table["key"], table["value"], table["headers"], micros, kinds]
    return pa.Table.from_arrays(columns, schema=schema.SEGMENT.remove(0))


def _note(
    case: str, some: list[bytes], rules: RecordRules, codec: RecordCodec, oracle: RecordCodec, found: Compared
) -> None:
    """Batches that are noted are right, and their records are those that aiokafka reads, also in their segments."""
    notes = codec.noted(some, rules, 1 << 20)
    if notes is None:
        return
    theirs = oracle.columns(some, rules)
    refused = [verdict(checked_in_python, batch, 1 << 20) for batch in some]
    ours = Columns(notes.table(0, len(some)), notes.counts, {})
    last = notes.table(len(some) - 1, len(some)).to_pylist()
    is_right = outcome(ours) == outcome(theirs) and not any(refused)
    is_right &= last == theirs.table.slice(sum(notes.counts[:-1])).to_pylist()
    records = NotedRecords([NotedPiece(0, notes, at, at + 1, count) for at, count in enumerate(notes.counts)])
    if records.are_plain(0, LAST_MS, with_keys=False):
        ((_, part),) = records.parts(as_records)
        for name in ("none", "lz4"):
            written = write_noted_segment([part], Codec(name, None), part.size)
            is_right &= written == write_small_segment(as_records(theirs.table), Codec(name, None), part.size)
    if not is_right:
        found.differences.append(f"{case}: noted\n{outcome(ours)}\n{outcome(theirs)}\n{some!r}")
    found.noted += len(some)


def _write(case: str, strange: Strange, codec: RecordCodec, oracle: RecordCodec, found: Compared) -> None:
    rng = strange.random
    records = [record for _ in range(rng.choice((1, 1, 6))) for record in strange.records()]
    step = rng.choice((1, 3, 2**30, 2**40))
    jump = rng.choice((0, 2**40))
    offsets = [jump * (at > 3) + step * at for at in range(len(records))]
    table = stored(records, offsets, rng.choice((schema.CREATE_TIME, schema.LOG_APPEND_TIME)))
    start = rng.randrange(len(records))
    table = table.slice(start, rng.randrange(1, len(records) - start + 1))
    if rng.random() < 0.3:
        table = table.drop_columns("headers")
    how = rng.randrange(-1, 9), rng.choice((0, 0, 0, 4)), rng.choice((61, 100, 200, 1000, 1 << 20))
    ours, theirs = codec.batches(table, *how), oracle.batches(table, *how)
    if list(ours) != list(theirs):
        found.differences.append(f"{case}: written {how}\n{ours}\n{theirs}")
    found.encoded += len(theirs)
