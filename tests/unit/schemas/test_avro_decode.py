"""Payloads of Avro become columns exactly as fastavro reads them, whatever their neighbours are."""

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.avro_payloads import NAMED, SIMPLE, around, plain, random_schema, random_value, read, record, rows, write

from tidelog.schemas.avro import decoder
from tidelog.schemas.compile import compile_schema

# All payloads one by one, as the size of the batch says, and rounds down to the last row.
FEW = (1 << 30, 48, 1)


def read_together_from(patch, few):
    for name in ("FEW", "FEW_ROWS", "FEW_BYTES"):
        patch.setattr(decoder, name, few)


@pytest.fixture(params=FEW)
def few(request, monkeypatch):
    read_together_from(monkeypatch, request.param)
    return request.param


def compiled(schema):
    return compile_schema("avro", json.dumps(schema))


def decoded(schema, payloads):
    found = compiled(schema).decode(pa.array(payloads, pa.binary()))
    found.columns.validate(full=True)
    assert (found.ok == np.array(found.columns.is_valid())).all() or compiled(schema).columns is None
    return found


def expected(schema, payloads):
    kind = compiled(schema).columns
    return [None if payload is None else plain(read(schema, payload), kind, schema) for payload in payloads]


@pytest.mark.parametrize("shape", around("int"))
@pytest.mark.parametrize("name", [*SIMPLE, *NAMED])
def test_every_type_is_read_as_fastavro_reads_it(name, shape, few):
    schema = record(before="string", it=around({**SIMPLE, **NAMED}[name])[shape], after="long")
    if name == "empty fixed" and shape.startswith("array") and shape != "array of nullable":
        assert "it" in compiled(schema).left_out
    random = Random(f"{name}{shape}")
    payloads = write(schema, [random_value(random, schema) for _ in range(70)])
    found = decoded(schema, payloads)
    assert found.ok.all()
    assert rows(found.columns) == expected(schema, payloads)


@given(st.integers(0, 1 << 32), st.integers(0, 100), st.sampled_from(FEW))
def test_random_schemas_are_read_as_fastavro_reads_them(seed, count, few):
    with pytest.MonkeyPatch.context() as patch:
        read_together_from(patch, few)
        random = Random(seed)
        schema = random_schema(random)
        payloads = write(schema, [random_value(random, schema) for _ in range(count)])
        found = decoded(schema, payloads)
        assert found.ok.all()
        if compiled(schema).columns is not None:
            assert rows(found.columns) == expected(schema, payloads)


@given(st.integers(0, 1 << 32), st.integers(1, 100), st.sampled_from(FEW[1:]))
def test_a_damaged_payload_harms_no_other_and_both_ways_of_reading_agree(seed, count, few):
    random = Random(seed)
    schema = random_schema(random)
    payloads = write(schema, [random_value(random, schema) for _ in range(count)])
    damaged = [damage(random, one) if random.random() < 0.3 else one for one in payloads]
    with pytest.MonkeyPatch.context() as patch:
        read_together_from(patch, 1 << 30)
        one_by_one = decoded(schema, damaged)
        read_together_from(patch, few)
        together = decoded(schema, damaged)
    assert together.ok.tolist() == one_by_one.ok.tolist()
    assert together.columns.equals(one_by_one.columns) or repr(rows(together.columns)) == repr(rows(one_by_one.columns))
    whole = decoded(schema, payloads)
    same = np.array([a == b for a, b in zip(payloads, damaged, strict=True)])
    assert together.ok[same].all()
    kept = pa.array(np.flatnonzero(same))
    assert repr(rows(together.columns.take(kept))) == repr(rows(whole.columns.take(kept)))
    for payload, ok in zip(damaged, together.ok, strict=True):
        assert (compiled(schema).problem(payload) is None) == ok


def damage(random, payload):
    if payload is None:
        return None
    data = bytearray(payload)
    way = random.randrange(6)
    at = random.randrange(len(data) + 1)
    if way == 0:
        return bytes(data[:at])
    if way == 1:
        return bytes(data) + random.randbytes(random.randint(1, 9))
    if way == 2:
        data[at:at] = random.choice(
            [b"\x80", b"\xff" * 9 + b"\x01", b"\xff" * 12, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"]
        )
        return bytes(data)
    if way == 3:
        return random.randbytes(random.randint(0, 40))
    if data:
        at = random.randrange(len(data))
        data[at] = random.randrange(256) if way == 4 else data[at] ^ (1 << random.randrange(8))
    return bytes(data)
