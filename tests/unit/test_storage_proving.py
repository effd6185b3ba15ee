"""A store that does not honour put-if-absent is refused before a lake in it comes to harm."""

import pytest
from obstore.store import MemoryStore
from support.faults import FaultyStorage
from support.logs import values
from support.small_s3 import SmallS3, small_s3

from tidelog.log.errors import StorageError, UnsafeStoreError
from tidelog.log.lake import Lake
from tidelog.log.layout import PROBE_FILE
from tidelog.log.storage import MemoryStorage, ObjectStorage, Storage, open_storage
from tidelog.log.storage.port import TakenOnTrust
from tidelog.log.storage.proving import create_first
from tidelog.log.storage.requests import RequestKind, Requests

URI = "s3://bucket/lake"
REFUSAL = (
    rf"The store of {URI} \(http://127\.0\.0\.1:\d+\) does not honour put-if-absent: it created \S+ again"
    rf" .*If-None-Match.*Nothing was changed\. .*tidelog check --store {URI}"
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
        assert PROBE_FILE not in "".join(s3.objects)


def log_of(s3: SmallS3) -> dict[str, bytes]:
    return {path: data for path, data in s3.objects.items() if "_delta_log" in path}


def test_a_process_tries_a_store_once():
    made: list[str] = []
    requests = Requests(lambda kind, path: made.append(path) if kind is RequestKind.CONDITIONAL_PUT else None)
    storage = objects(requests)
    with Lake(URI, storage=storage) as lake:
        assert made == ["__lake.json", "__lake.json"]
        for text in "abc":
            lake.topic("t").append(values(text))
    assert storage.proven
    assert not any(path.endswith(PROBE_FILE) for path in made)

    made.clear()
    other = ObjectStorage(URI, store=storage._store, requests=requests)
    with Lake(URI, storage=other) as lake:
        list(lake.topic("t").read(0))
        assert made == []
        lake.topic("t").append(values("d"))
        lake.topic("t").append(values("e"))
        lake.topic("u").append(values("f"))
    # The object that is tried stays: from then on a process asks for it once.
    assert [path for path in made if "_delta_log" not in path] == [f"t/{PROBE_FILE}"] * 2
    made.clear()
    with Lake(URI, storage=ObjectStorage(URI, store=storage._store, requests=requests)) as lake:
        lake.topic("t").append(values("g"))
    assert [path for path in made if "_delta_log" not in path] == [f"t/{PROBE_FILE}"]


def test_an_object_deleted_meanwhile_is_no_proof_against_the_store():
    storage = objects()
    real = storage.put_if_absent
    calls: list[str] = []

    def deleted_once(path: str, data: bytes) -> bool:
        calls.append(path)
        if len(calls) == 2:
            storage.delete(path)
        return real(path, data)

    storage.put_if_absent = deleted_once  # type: ignore[method-assign]
    assert create_first(storage, "a", b"1") is True
    assert (storage.proven, len(calls)) == (True, 3)


def test_no_answer_proves_nothing():
    storage = objects()

    def silent(path: str, data: bytes) -> bool:
        raise StorageError("no")

    real, storage.put_if_absent = storage.put_if_absent, silent  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no"):
        create_first(storage, "a", b"1")
    assert not storage.proven
    storage.put_if_absent = real  # type: ignore[method-assign]
    assert create_first(storage, "a", b"1") is True
    assert storage.proven


@pytest.mark.parametrize(
    "storage", [MemoryStorage("m"), open_storage("/nowhere"), FaultyStorage(MemoryStorage("m"), print)]
)
def test_stores_that_keep_their_word_by_themselves_are_not_tried(storage: Storage):
    assert not isinstance(storage, TakenOnTrust)
