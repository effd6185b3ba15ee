"""Partitioners: Kafka's vectors, a plain scalar murmur2, mmh3, and the order of explicit, key, null."""

from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidRecordError,
    UnknownPartitionError,
)
from tidelog.log.records.key_hashes import murmur2
from tidelog.log.records.key_hashes import murmur3 as murmur3_hash
from tidelog.log.records.partitioners import assign, murmur3, partition, random, round_robin, sticky


def scalar_murmur2(key: bytes) -> int:
    """Austin Appleby's MurmurHash2 as published, with Kafka's seed."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(key[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


# UtilsTest.testMurmur2
KAFKA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

keys_of_any_length = st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=1000, max_size=1100), max_size=40)


def test_kafka_murmur2_vectors() -> None:
    hashes = murmur2(pa.array(list(KAFKA_VECTORS), pa.binary()))
    assert hashes.dtype == np.uint32
    assert hashes.view(np.int32).tolist() == list(KAFKA_VECTORS.values())


@given(keys_of_any_length)
def test_murmur2_equals_the_scalar_algorithm(keys: list[bytes | None]) -> None:
    expected = [0 if key is None else scalar_murmur2(key) for key in keys]
    assert murmur2(pa.array(keys, pa.binary())).tolist() == expected


@given(keys_of_any_length)
def test_murmur3_equals_mmh3(keys: list[bytes | None]) -> None:
    expected = [0 if key is None else mmh3.hash(key, signed=False) for key in keys]
    assert murmur3_hash(pa.array(keys, pa.binary())).tolist() == expected


@given(keys_of_any_length, st.integers(0, 40), st.integers(0, 40))
def test_a_slice_hashes_as_its_own_keys(keys: list[bytes | None], start: int, count: int) -> None:
    sliced = pa.array(keys, pa.binary()).slice(min(start, len(keys)), count)
    assert murmur2(sliced).tolist() == murmur2(pa.array(sliced.to_pylist(), pa.binary())).tolist()


@given(st.lists(st.lists(st.none() | st.binary(max_size=9), max_size=5), max_size=4))
def test_chunks_hash_as_one_array(chunks: list[list[bytes | None]]) -> None:
    chunked = pa.chunked_array([pa.array(chunk, pa.binary()) for chunk in chunks], pa.binary())
    assert murmur2(chunked).tolist() == murmur2(chunked.combine_chunks()).tolist()
    assert partition(chunked, 5).tolist() == partition(chunked.combine_chunks(), 5).tolist()


@pytest.mark.parametrize("rows", [32_767, 32_768, 32_769, 70_000])
def test_blocks_of_many_keys(rows: int) -> None:
    keys = [str(i * 7919).encode() for i in range(rows)]
    hashes = murmur2(pa.array(keys))
    for row in [0, 1, rows // 2, 32_766, rows - 1]:
        assert hashes[row] == scalar_murmur2(keys[row]), row


@pytest.mark.parametrize("longest", [1, 70_000, 300_000])
def test_a_few_keys_much_longer_than_the_rest(longest: int) -> None:
    keys = [b"short", b"x" * longest, b"", b"y" * (longest // 2 + 1), b"0123456789"]
    assert murmur2(pa.array(keys)).tolist() == [scalar_murmur2(key) for key in keys]
    assert murmur3_hash(pa.array(keys)).tolist() == [mmh3.hash(key, signed=False) for key in keys]


def test_the_bytes_under_a_null_do_not_count() -> None:
    offsets, data = pa.py_buffer(np.array([0, 3, 6], np.int32)), pa.py_buffer(b"abcxyz")
    valid = pa.py_buffer(bytes([0b01]))
    keys = pa.Array.from_buffers(pa.binary(), 2, [valid, offsets, data])
    assert murmur2(keys).view(np.int32).tolist() == [479470107, 0]


def test_partition_drops_the_sign_bit_as_kafka_does() -> None:
    keys = pa.array([*KAFKA_VECTORS, None, b""], pa.binary())
    expected = [(value & 0x7FFFFFFF) % 7 for value in KAFKA_VECTORS.values()]
    partitions = partition(keys, 7)
    assert partitions.dtype == np.int32
    assert partitions.tolist() == [*expected, -1, (scalar_murmur2(b"") & 0x7FFFFFFF) % 7]
    assert partition(pa.array([b"foobar"]), 8).tolist() == [6]


def test_murmur3_partitions_as_mmh3_says() -> None:
    keys = [b"a", b"", b"order-17", b"x" * 33]
    expected = [(mmh3.hash(key) & 0x7FFFFFFF) % 12 for key in keys]
    assert murmur3(pa.array([*keys, None]), 12).tolist() == [*expected, -1]


def test_round_robin_goes_on_where_it_was_left() -> None:
    assert round_robin(2, 4, 3).tolist() == [2, 0, 1, 2]
    assert round_robin(2 + 4, 3, 3).tolist() == [0, 1, 2]
    assert round_robin(2**63, 2, 3).tolist() == [2**63 % 3, (2**63 + 1) % 3]


def test_sticky_takes_the_partitions_in_turn() -> None:
    assert [sticky(turn, 3) for turn in (0, 1, 2, 3)] == [0, 1, 2, 0]


def test_random_repeats_with_its_seed_and_is_even() -> None:
    first = random(7, 80_000, 8)
    assert first.tolist() == random(7, 80_000, 8).tolist()
    assert first.tolist() != random(8, 80_000, 8).tolist()
    assert np.abs(np.bincount(first, minlength=8) - 10_000).max() < 500
    # neighbours don't go together
    assert abs(np.mean(first[1:] == first[:-1]) - 1 / 8) < 0.01


def test_assign_resolves_explicit_then_key_then_sticky() -> None:
    keys = pa.array([b"abc", b"abc", None, None], pa.binary())
    explicit = pa.array([5, None, 6, None], pa.int32())
    assert assign(keys, explicit, 7, sticky=10).tolist() == [5, 479470107 % 7, 6, 10 % 7]
    assert assign(keys, None, 7, sticky=10).tolist() == [479470107 % 7, 479470107 % 7, 3, 3]


@pytest.mark.parametrize("explicit", [None, pa.nulls(3), pa.nulls(3, pa.int64())])
def test_assign_without_any_explicit_partition(explicit: Any) -> None:
    keys = pa.array([b"a", b"b", b"c"])
    assert assign(keys, explicit, 9, sticky=0).tolist() == partition(keys, 9).tolist()


def test_assign_with_all_partitions_explicit_needs_no_keys() -> None:
    assert assign(pa.nulls(2), pa.chunked_array([[1], [0]]), 2, sticky=0).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [
        ("murmur2", lambda keys: [*partition(keys, 5)[:2], 4]),
        ("murmur3", lambda keys: [*murmur3(keys, 5)[:2], 4]),
        ("round_robin", lambda keys: [4, 0, 1]),
        ("random", lambda keys: random(4, 3, 5).tolist()),
        (lambda keys, n: [n - 1, None, len(keys)], lambda keys: [4, 4, 3]),
        (lambda keys, n: np.array([0, 1, 2], np.int64), lambda keys: [0, 1, 2]),
        (lambda keys, n: pa.chunked_array([[0, 1], [2]]), lambda keys: [0, 1, 2]),
        (lambda keys, n: pa.nulls(len(keys)), lambda keys: [4, 4, 4]),
    ],
)
def test_assign_by_each_partitioner(partitioner: Any, expected: Any) -> None:
    keys = pa.array([b"k1", b"k2", None])
    chosen = assign(keys, None, 5, partitioner=partitioner, sticky=4)
    assert chosen.dtype == np.int32
    assert chosen.tolist() == expected(keys)


def test_a_custom_partitioner_sees_the_keys_that_are_left_as_one_array() -> None:
    seen = []

    def by_first_byte(keys: pa.Array, n: int) -> list[int]:
        seen.append((keys, n))
        return [key[0] % n for key in keys.to_pylist()]

    keys = pa.chunked_array([[b"\x01", b"\x02"], [b"\x03"]])
    explicit = pa.array([None, 9, None], pa.int64())
    assert assign(keys, explicit, 10, partitioner=by_first_byte, sticky=0).tolist() == [1, 9, 3]
    assert seen == [(pa.array([b"\x01", b"\x03"]), 10)]


@pytest.mark.parametrize("wrong", [8, -1, 2**40])
def test_an_explicit_partition_that_is_not_there(wrong: int) -> None:
    with pytest.raises(UnknownPartitionError, match=rf"Partition {wrong} in row 1 .* 8 partitions are numbered 0 to 7"):
        assign(pa.nulls(2, pa.binary()), pa.array([0, wrong], pa.int64()), 8, sticky=0)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([0], InvalidConfigError, "answered 1 partitions for 2 keys"),
        ([0.5, 1.0], InvalidConfigError, "answered with double"),
        (["0", "1"], InvalidConfigError, "answered with string"),
        (3, InvalidConfigError, "answered with int, which is no array"),
        (None, InvalidConfigError, "answered with NoneType, which is no array"),
        ([0, 4], UnknownPartitionError, "by_rule: Partition 4 in row 1 does not exist"),
        ([-1, 0], UnknownPartitionError, "by_rule: Partition -1 in row 0 does not exist"),
    ],
)
def test_a_custom_partitioner_that_answers_badly(answer: Any, error: type[Exception], message: str) -> None:
    def by_rule(keys: pa.Array, n: int) -> Any:
        return answer

    with pytest.raises(error, match=message):
        assign(pa.array([b"a", b"b"]), None, 4, partitioner=by_rule, sticky=0)


@pytest.mark.parametrize(
    ("partitioner", "message"),
    [("murmur22", "Unknown partitioner 'murmur22'. Did you mean 'murmur2'"), (5, "name or a callable, not int")],
)
def test_an_unknown_partitioner(partitioner: Any, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        assign(pa.array([b"a"]), None, 4, partitioner=partitioner, sticky=0)


def test_columns_that_do_not_fit() -> None:
    with pytest.raises(InvalidRecordError, match="1 partitions were given for 2 keys"):
        assign(pa.array([b"a", b"b"]), pa.array([1]), 4, sticky=0)
    with pytest.raises(InvalidRecordError, match="partition column of type string"):
        assign(pa.array([b"a"]), pa.array(["1"]), 4, sticky=0)


@pytest.mark.parametrize("n", [0, -1])
def test_at_least_one_partition(n: int) -> None:
    for call in (
        lambda: partition(pa.array([b"a"]), n),
        lambda: round_robin(0, 1, n),
        lambda: random(0, 1, n),
        lambda: sticky(0, n),
        lambda: assign(pa.array([b"a"]), pa.array([0]), n, sticky=0),
    ):
        with pytest.raises(InvalidPartitionsError, match="a topic has at least 1"):
            call()


@given(st.lists(st.none() | st.binary(max_size=8)), st.integers(1, 2**31 - 1), st.integers())
def test_every_assignment_is_a_partition_of_the_topic(keys: list[bytes | None], n: int, turn: int) -> None:
    for name in ("murmur2", "murmur3", "round_robin", "random"):
        chosen = assign(pa.array(keys, pa.binary()), None, n, partitioner=name, sticky=turn)
        assert len(chosen) == len(keys)
        assert ((chosen >= 0) & (chosen < n)).all(), name
