"""One call of an object store, with a proxy before a real server that fails: how often it is tried, what comes out."""

from collections.abc import Callable, Iterator

import pytest
from support.fault_proxy import Fault, first
from support.faulty_store import RETRIES, FaultyStore, faulty_store
from support.storage_adapters import names

from tidelog.log.base.errors import ObjectNotFoundError, StoragePermissionError, StorageUnavailableError
from tidelog.log.storage import ObjectStorage


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyStore]:
    with faulty_store() as store:
        yield store


@pytest.fixture
def store(server: FaultyStore) -> FaultyStore:
    for name in ("f/old", "f/new"):
        server.place.storage().delete(name)
    server.place.storage().put("f/old", b"old")
    server.proxy.plan = first(Fault.NONE, 0)
    server.proxy.forget()
    return server


# The call, the kind of its request, and what it returns.
CALLS: dict[str, tuple[Callable[[ObjectStorage], object], str, object]] = {
    "get": (lambda storage: storage.get("f/old"), "get", b"old"),
    "head": (lambda storage: storage.head("f/old").size, "head", 3),
    "open": (lambda storage: storage.open("f/old").read(), "get", b"old"),
    "list": (lambda storage: names(storage, "f"), "list", ["f/old"]),
    "put": (lambda storage: storage.put("f/new", b"new"), "put", None),
    "put_if_absent": (lambda storage: storage.put_if_absent("f/new", b"new"), "create", True),
    "delete": (lambda storage: storage.delete("f/old"), "delete", None),
}
ANSWERED = [Fault.SLOW_DOWN, Fault.ERROR, Fault.ERROR_AFTER]
CUT = [Fault.LOST, Fault.DROPPED]
SILENT = [Fault.HUNG, Fault.HUNG_AFTER]


@pytest.mark.parametrize("fault", [*ANSWERED, *CUT], ids=lambda fault: fault.name)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails_twice_is_tried_three_times(store: FaultyStore, call: str, fault: Fault):
    ask, kind, answer = CALLS[call]
    store.proxy.plan = first(fault, 2, kind)
    if kind == "create" and fault.acts:
        answer = False  # the first try created the object; the client can't distinguish that from another writer's
    assert ask(store.storage()) == answer
    assert store.proxy.counts[kind] == 3
    assert sum(store.proxy.counts.values()) == 3
    if kind in ("put", "create"):
        assert store.place.storage().get("f/new") == b"new"


@pytest.mark.parametrize("fault", [*ANSWERED, *CUT], ids=lambda fault: fault.name)
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_always_fails_is_tried_so_often_and_no_more(store: FaultyStore, call: str, fault: Fault):
    ask, kind, _ = CALLS[call]
    store.proxy.plan = first(fault, 1000)
    with pytest.raises(StorageUnavailableError, match=rf"tried {RETRIES + 1} times in [\d.]+ m?s") as found:
        ask(store.storage())
    assert store.proxy.counts == {kind: RETRIES + 1}
    assert "lake.store.retries" in str(found.value)
    assert ("A write may or may not have happened" in str(found.value)) == (kind not in ("get", "head", "list"))


@pytest.mark.parametrize("fault", SILENT, ids=lambda fault: fault.name)
def test_a_call_without_an_answer_is_repeated_after_its_time(store: FaultyStore, fault: Fault):
    store.proxy.plan = first(fault, 1, "get", "put")
    storage = store.storage(request_timeout_ms="200")
    storage.put("f/new", b"new")
    assert storage.get("f/old") == b"old"
    assert store.proxy.counts == {"put": 2, "get": 1}


@pytest.mark.parametrize(("fault", "there"), [(Fault.HUNG, False), (Fault.HUNG_AFTER, True)])
def test_a_conditional_put_without_an_answer_is_left_to_its_caller(store: FaultyStore, fault: Fault, there: bool):
    """Only the writer of its content can tell its own success from another's."""
    store.proxy.plan = first(fault, 1, "create")
    storage = store.storage(request_timeout_ms="200")
    with pytest.raises(StorageUnavailableError, match="may or may not have happened"):
        storage.put_if_absent("f/new", b"new")
    assert store.proxy.counts == {"create": 1}
    assert storage.put_if_absent("f/new", b"new") is not there


def test_repeats_end_with_their_time(store: FaultyStore):
    store.proxy.plan = first(Fault.HUNG, 1000)
    with pytest.raises(StorageUnavailableError):
        store.storage(request_timeout_ms="100", retry_timeout_ms="150").get("f/old")
    assert 2 <= store.proxy.counts["get"] <= 3


def test_nobody_listens_for_a_while(store: FaultyStore):
    storage = store.storage()
    with store.proxy.refusing():
        for call in (lambda: storage.get("f/old"), lambda: storage.put_if_absent("f/new", b"new")):
            with pytest.raises(StorageUnavailableError, match=rf"tried {RETRIES + 1} times .* can be reached"):
                call()
    assert storage.put_if_absent("f/new", b"new")
    assert storage.get("f/new") == b"new"


def test_what_is_refused_is_not_repeated(store: FaultyStore):
    with pytest.raises(ObjectNotFoundError):
        store.storage().get("f/gone")
    keys = {"lake.s3.endpoint": store.proxy.url, "lake.s3.secret.access.key": "not-the-secret"}
    with pytest.raises(StoragePermissionError, match="SignatureDoesNotMatch"):
        ObjectStorage(store.place.uri, {**store.place.options, **keys}).get("f/old")
    assert store.proxy.counts == {"get": 2}
