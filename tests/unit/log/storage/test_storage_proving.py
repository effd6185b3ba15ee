"""A store that does not honour put-if-absent is refused before a lake in it comes to harm."""

import re
import socket
import threading
from collections import Counter
from typing import Any

import pytest
from obstore.store import MemoryStore
from support.faults import FaultyStorage
from support.logs import values
from support.small_s3 import SmallS3, small_s3

from tidelog.log.base.clock import SystemIds
from tidelog.log.base.errors import StorageError, UnsafeStoreError
from tidelog.log.delta.layout import PROBES_FOLDER, PROOF_PREFIX
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage, ObjectStorage, Storage, open_storage
from tidelog.log.storage.port import TakenOnTrust
from tidelog.log.storage.proving import RACERS, RACES, create_first
from tidelog.log.storage.requests import RequestKind, Requests

URI = "s3://bucket/lake"
REFUSAL = (
    rf"The store of {URI} \(http://127\.0\.0\.1:\d+\) does not honour put-if-absent: .*If-None-Match"
    rf".*Nothing was changed\. .*tidelog check --store {URI}"
)


def objects(requests: Requests | None = None) -> ObjectStorage:
    return ObjectStorage(URI, store=MemoryStore(), requests=requests)


def test_a_lake_is_not_created_where_conditions_are_ignored():
    with small_s3(ignores_conditions=True) as s3:
        with pytest.raises(UnsafeStoreError, match=REFUSAL) as caught:
            Lake(URI, options=s3.options)
        assert s3.objects == {}
        assert not any(secret in str(caught.value) for secret in ("AKIASMALL", "smallsecret"))


def test_a_lake_that_is_there_is_read_and_not_written():
    with small_s3() as s3:
        with Lake(URI, options=s3.options) as lake:
            lake.topic("t").append(values("a", "b"))
        s3.ignores_conditions = True
        before = dict(s3.objects)
        with Lake(URI, options=s3.options) as lake:
            assert len(list(lake.topic("t").read(0))) == 1
            for _ in range(2):
                with pytest.raises(UnsafeStoreError, match=REFUSAL):
                    lake.topic("t").append(values("c"))
            assert log_of(s3) == {path: data for path, data in before.items() if "_delta_log" in path}
            with pytest.raises(UnsafeStoreError):
                lake.create_topic("u")
        # What tells the store's time is put before anything of a log is.
        assert {path for path in s3.objects if not path.endswith("/_tidelog/clock")} == set(before)


def log_of(s3: SmallS3) -> dict[str, bytes]:
    return {path: data for path, data in s3.objects.items() if "_delta_log" in path}


def test_a_process_tries_a_store_once():
    """Its requests are those that docs/object-stores.md states."""
    made: Counter[str] = Counter()
    requests = Requests(lambda kind, path: made.update([told(kind, path)]))
    storage = objects(requests)
    proof = {f"conditional_put {PROOF_PREFIX}": 160, f"delete {PROOF_PREFIX}": 20}
    with Lake(URI, storage=storage) as lake:
        # Of the gets, two look whether there is a lake, and one at the lake that was made. A store in memory refuses
        # without S3's number for it, and is asked once more by HEAD each time.
        assert {what: n for what, n in made.items() if not what.startswith("head")} == {
            **proof,
            "conditional_put __lake.json": 2,
            "get __lake.json": 3,
            "list": 1,
        }
        for text in "abc":
            lake.topic("t").append(values(text))
    assert storage.proven
    assert probes(made) == proof

    made.clear()
    other = ObjectStorage(URI, store=storage._nodes.current, requests=requests)
    with Lake(URI, storage=other) as lake:
        list(lake.topic("t").read(0))
        assert probes(made) == {}
        lake.topic("t").append(values("d"))
        lake.topic("t").append(values("e"))
        lake.topic("u").append(values("f"))
    # A folder's first writer that has no proof yet races, and marks that; from then on a process asks for the mark.
    assert probes(made) == {"get t probe": 1, "conditional_put t probe": 160 + 2}
    made.clear()
    with Lake(URI, storage=ObjectStorage(URI, store=storage._nodes.current, requests=requests)) as lake:
        lake.topic("t").append(values("g"))
    assert probes(made) == {"get t probe": 1, "conditional_put t probe": 1}


def told(kind: RequestKind, path: str) -> str:
    if kind is RequestKind.LIST:
        return "list"
    folder, _, rest = path.partition("/")
    if folder.startswith(PROOF_PREFIX):
        return f"{kind.value} {PROOF_PREFIX}"
    return f"{kind.value} {folder} probe" if rest.startswith(PROBES_FOLDER) else f"{kind.value} {path}"


def probes(made: Counter[str]) -> dict[str, int]:
    return {what: n for what, n in made.items() if what.endswith(("probe", PROOF_PREFIX)) and "head" not in what}


# --- stores that refuse what is there, and let two create one name at once ------------------------------------


def racing() -> dict[str, Any]:
    """A server that looks whether a name is there for all writers at once, and then stores for all."""
    return {"looks_early": re.compile(r"-[^/]+/\d\d$"), "at_once": threading.Barrier(RACERS)}


RACED = rf"{RACERS} of {RACERS} writers at once .*Nothing was changed\. .*tidelog check --store {URI}"


def test_a_lake_is_not_created_where_two_win_a_race():
    with small_s3(**racing()) as s3:
        with pytest.raises(UnsafeStoreError, match=RACED):
            Lake(URI, options=s3.options)
        assert s3.objects == {}


def test_a_lake_is_not_written_where_two_win_a_race():
    """It came from another store, whose marks say nothing of this one."""
    with small_s3() as good:
        for _ in range(2):
            with Lake(URI, options=good.options) as lake:
                lake.topic("t").append(values("a"))
        assert any(PROBES_FOLDER in path for path in good.objects)
        with small_s3(objects=dict(good.objects), **racing()) as s3:
            with Lake(URI, options=s3.options) as lake:
                for _ in range(2):
                    with pytest.raises(UnsafeStoreError, match=RACED):
                        lake.topic("t").append(values("b"))
            assert log_of(s3) == log_of(good)
            assert {p for p in s3.objects if "_tidelog" in p} == {p for p in good.objects if "_tidelog" in p}


def test_a_store_is_tried_at_each_address_of_its_name(monkeypatch: pytest.MonkeyPatch):
    """Two gateways, of which each decides races by itself: a name is created at both."""
    with small_s3() as one:
        port = int(one.url.rpartition(":")[2])
        with small_s3(at=("127.0.0.2", port)) as two:
            options = {**one.options, "lake.s3.endpoint": f"http://localhost:{port}"}
            resolves_to(monkeypatch, port, "127.0.0.1", "127.0.0.2")
            with pytest.raises(UnsafeStoreError, match=f"2 of {RACERS} writers at once"):
                Lake(URI, options=options)
            assert not any("__lake.json" in path for path in [*one.objects, *two.objects])
            two.objects = one.objects  # from now on they are gateways of one store
            two.lock = one.lock
            Lake(URI, options=options).close()
            assert sum("PUT" in line for line in two.seen) >= RACES


def test_an_address_that_does_not_answer_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    with small_s3() as s3:
        port = int(s3.url.rpartition(":")[2])
        resolves_to(monkeypatch, port, "127.0.0.1", "127.0.0.2")
        with Lake(URI, options={**s3.options, "lake.s3.endpoint": f"http://localhost:{port}"}) as lake:
            lake.topic("t").append(values("a"))


def resolves_to(monkeypatch: pytest.MonkeyPatch, port: int, *hosts: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in hosts]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_named: found)


def test_an_object_deleted_meanwhile_is_no_proof_against_the_store():
    storage = objects()
    real = storage.put_if_absent
    calls: list[str] = []

    def deleted_once(path: str, data: bytes) -> bool:
        if path == "a":
            calls.append(path)
            if len(calls) == 2:
                storage.delete(path)
        return real(path, data)

    storage.put_if_absent = deleted_once  # type: ignore[method-assign]
    assert create_first(storage, "a", b"1", SystemIds()) is True
    assert (storage.proven, len(calls)) == (True, 3)


def test_no_answer_proves_nothing():
    storage = objects()

    def silent(path: str, data: bytes) -> bool:
        raise StorageError("no")

    real, storage.put_if_absent = storage.put_if_absent, silent  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no"):
        create_first(storage, "a", b"1", SystemIds())
    assert not storage.proven
    storage.put_if_absent = real  # type: ignore[method-assign]
    assert create_first(storage, "a", b"1", SystemIds()) is True
    assert storage.proven


@pytest.mark.parametrize(
    "storage", [MemoryStorage("m"), open_storage("/nowhere"), FaultyStorage(MemoryStorage("m"), print)]
)
def test_stores_that_keep_their_word_by_themselves_are_not_tried(storage: Storage):
    assert not isinstance(storage, TakenOnTrust)
