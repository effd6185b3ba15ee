"""librdkafka's partitioners give librdkafka's partitions."""

from typing import Any

import pyarrow as pa
import pytest

from tidelog.clients.producer.partitioning import fnv1a, rule_of
from tidelog.clients.settings.producer import PARTITIONERS
from tidelog.log.records.partitioners import assign

# librdkafka's tests/0048-partitioner.c: hashes of its keys; None: anywhere.
KEYS = [None, b"", b"23456", b"this is another string with more length to it perhaps", b"hejsan"]
LIBRDKAFKA: dict[str, list[int | None]] = {
    "random": [None] * 5,
    "consistent": [0, 0, 0xB1B451D7, 0xB0150DF7, 0xD077037E],
    "consistent_random": [None, None, 0xB1B451D7, 0xB0150DF7, 0xD077037E],
    "murmur2": [0x106E08D9, 0x106E08D9, 0x058D780F, 0x4F7703DA, 0x5EC19395],
    "murmur2_random": [None, 0x106E08D9, 0x058D780F, 0x4F7703DA, 0x5EC19395],
    "fnv1a": [0x7EE3623B, 0x7EE3623B, 0x27E6F469, 0x155E3E5F, 0x17B1E27A],
    "fnv1a_random": [None, 0x7EE3623B, 0x27E6F469, 0x155E3E5F, 0x17B1E27A],
}
STICKY = 100


@pytest.mark.parametrize("n", [1, 7, 17])
@pytest.mark.parametrize(("name", "hashes"), LIBRDKAFKA.items())
def test_librdkafkas_vectors(name: str, hashes: list[int | None], n: int) -> None:
    chosen = assign(pa.array(KEYS, pa.binary()), None, n, partitioner=rule_of(name), sticky=STICKY)
    assert chosen.tolist() == [(STICKY if h is None else h) % n for h in hashes]


# librdkafka's src/rdfnv1a.c
FNV1A: list[tuple[Any, int]] = [
    (b"kafka", 0xD33C4E1),
    (b"giberish123456789", 0x77A58295),
    (b"1234", 0x23BDD03),
    (b"PreAmbleWillBeRemoved,ThePrePartThatIs", 0x65CBD69C),
    (b"reAmbleWillBeRemoved,ThePrePartThatIs", 0x6E49C79A),
    (b"", 0x7EE3623B),
    (None, 0x7EE3623B),
]


def test_fnv1a() -> None:
    keys = pa.array([key for key, _ in FNV1A], pa.binary())
    assert fnv1a(keys).tolist() == [h for _, h in FNV1A]
    assert fnv1a(keys.slice(3, 2)).tolist() == [h for _, h in FNV1A[3:5]]
    assert fnv1a(keys.slice(0, 0)).tolist() == []


def test_every_name_that_a_producer_takes_is_a_rule() -> None:
    for name in PARTITIONERS:
        assert len(assign(pa.array(KEYS, pa.binary()), None, 3, partitioner=rule_of(name), sticky=1)) == 5


def test_a_callable_is_its_own_rule() -> None:
    assert assign(pa.array([b"a"]), None, 3, partitioner=rule_of(lambda keys, n: [n - 1]), sticky=0).tolist() == [2]
