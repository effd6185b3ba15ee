"""The count of requests is that of the requests which a server sees, and for other stores the same."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.fault_proxy import fault_proxy
from support.logs import values
from support.small_s3 import SmallS3, small_s3
from support.storage_adapters import write
from support.versitygw import S3Place

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage, ObjectStorage, Storage, open_storage
from tidelog.log.storage.counting import CountingStorage
from tidelog.log.storage.requests import RequestCounts, RequestKind, Requests

MB = 1_000_000


def seen(server: SmallS3) -> Counter[str]:
    """What the server saw since the last time: by method, and S3's own words for the rest."""
    words = [(line.partition(" ")[0], line.partition("?")[2]) for line in server.seen]
    server.seen.clear()

    def kind(method: str, query: str) -> str:
        if "uploadId" in query or "uploads" in query:
            return {"PUT": "part", "DELETE": "abort", "POST": "begin" if "uploads" in query else "end"}[method]
        if "list-type" in query:
            return "list"
        return "delete" if method == "DELETE" or query.startswith("delete") else method.lower()

    return Counter(kind(*word) for word in words)


WORDS = {
    RequestKind.RANGED_GET: "get",
    RequestKind.CONDITIONAL_PUT: "put",
    RequestKind.MULTIPART_CREATE: "begin",
    RequestKind.MULTIPART_PART: "part",
    RequestKind.MULTIPART_COMPLETE: "end",
    RequestKind.MULTIPART_ABORT: "abort",
}


def as_words(counts: RequestCounts) -> Counter[str]:
    """Requests as `seen` tells them."""
    found: Counter[str] = Counter()
    for kind, n in counts.by_kind.items():
        found[WORDS.get(kind, kind.value)] += n
    return found


def read_all(storage: Storage, path: str, size: int | None, *ranges: tuple[int, int]) -> None:
    with storage.open(path, size) as file:
        for start, end in ranges:
            file.seek(start)
            file.read(end - start)


def missing(call: Callable[[], object]) -> None:
    with pytest.raises(ObjectNotFoundError):
        call()


def broken(storage: Storage, size: int) -> None:
    with pytest.raises(KeyError):
        write(storage, "x/broken", bytes(size), error=KeyError())


# Each done to a store with objects x/small of 10 bytes, and x/large of 3 MB: its requests.
DONE: dict[str, tuple[Callable[[Storage], Any], dict[str, int]]] = {
    "get": (lambda s: s.get("x/small"), {"get": 1}),
    "get nothing": (lambda s: missing(lambda: s.get("x/none")), {"get": 1}),
    "head": (lambda s: s.head("x/small"), {"head": 1}),
    "head of nothing": (lambda s: missing(lambda: s.head("x/none")), {"head": 1}),
    "put": (lambda s: s.put("x/a", b"1"), {"put": 1}),
    "put 16 MB": (lambda s: s.put("x/a", bytes(16 * MB)), {"put": 1}),
    "put 20 MB": (lambda s: s.put("x/a", bytes(20 * MB)), {"begin": 1, "part": 3, "end": 1}),
    "put_if_absent": (lambda s: s.put_if_absent("x/a", b"1"), {"put": 1}),
    "put_if_absent, and it is there": (lambda s: s.put_if_absent("x/small", b"1"), {"put": 1}),
    "create": (lambda s: write(s, "x/a", b"1", b"2"), {"put": 1}),
    "create 9 MB": (lambda s: write(s, "x/a", *[bytes(MB)] * 9), {"put": 1}),
    "create 25 MB": (lambda s: write(s, "x/a", *[bytes(MB)] * 25), {"begin": 1, "part": 3, "end": 1}),
    "create 10 MiB": (lambda s: write(s, "x/a", bytes(10 << 20)), {"begin": 1, "part": 1, "end": 1}),
    "create, given up": (lambda s: broken(s, 100), {}),
    "open": (lambda s: read_all(s, "x/small", None, (0, 10)), {"get": 1}),
    "open of a known size": (lambda s: read_all(s, "x/small", 10, (8, 10), (0, 5)), {"get": 1}),
    "open nothing": (lambda s: missing(lambda: s.open("x/none", 10)), {"get": 1}),
    "open by a wrong size": (lambda s: read_all(s, "x/small", 9 * MB, (0, 10)), {"get": 2, "head": 1}),
    "read three ranges": (
        lambda s: read_all(s, "x/large", 3 * MB, (3 * MB - 8, 3 * MB), (0, 10), (2 * MB, 2 * MB + 9)),
        {"get": 3},
    ),
    "delete": (lambda s: s.delete("x/small"), {"delete": 1}),
    "list": (lambda s: list(s.list_after("x")), {"list": 1}),
    "list after": (lambda s: list(s.list_after("x", "m")), {"list": 1}),
    "list folders": (lambda s: s.list_folders(""), {"list": 1}),
    "sync": (lambda s: s.sync(["x/small"]), {}),
}
each = pytest.mark.parametrize(("act", "expected"), DONE.values(), ids=DONE)


def filled(storage: Storage) -> Storage:
    storage.put("x/small", bytes(10))
    storage.put("x/large", bytes(3 * MB))
    return storage


@pytest.fixture(scope="module")
def server() -> Iterator[SmallS3]:
    with small_s3() as server:
        yield server


@each
def test_what_is_counted_is_what_the_server_sees(
    server: SmallS3, act: Callable[[Storage], Any], expected: dict[str, int]
):
    server.objects.clear()
    storage = filled(open_storage("s3://bucket/lake", server.options))
    assert isinstance(storage, ObjectStorage)
    before = storage.requests.counts()
    server.seen.clear()
    act(storage)
    assert seen(server) == as_words(storage.requests.counts().since(before)) == expected


@each
def test_another_store_counts_what_an_object_store_would_be_asked(
    act: Callable[[Storage], Any], expected: dict[str, int]
):
    storage = CountingStorage(filled(MemoryStorage("counted")))
    act(storage)
    assert as_words(storage.requests.counts()) == expected


def test_an_upload_that_is_given_up_was_begun_and_is_taken_back(server: SmallS3):
    storage = open_storage("s3://bucket/lake", server.options)
    assert isinstance(storage, ObjectStorage)
    server.seen.clear()
    broken(storage, 21 << 20)
    found = as_words(storage.requests.counts())
    assert found == {"begin": 1, "part": 2, "abort": 1}
    assert found - seen(server) <= Counter(part=2)  # a part that was not sent yet never is


def test_bytes_are_counted_both_ways():
    storage = CountingStorage(MemoryStorage("bytes"))
    storage.put("a", bytes(100))
    storage.put_if_absent("b", bytes(20))
    write(storage, "c", bytes(3))
    storage.get("a")
    read_all(storage, "c", 3, (0, 3))
    counts = storage.requests.counts()
    assert (counts.sent_bytes, counts.received_bytes) == (123, 103)


@pytest.mark.parametrize(("found", "pages"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (5000, 5)])
def test_a_listing_is_a_request_for_each_thousand(found: int, pages: int):
    requests = Requests()
    requests.note_listed("x", found)
    assert requests.counts().by_kind == {RequestKind.LIST: pages}


def test_a_lake_on_a_real_server(s3: S3Place):
    """Created, written to, opened, read: what the proxy before it sees is what was counted."""
    with fault_proxy(s3.endpoint) as proxy:
        options = {**s3.options, "lake.s3.endpoint": proxy.url}
        with Lake(s3.uri, options=options) as lake:
            lake.create_topic("t", 2)
            for number in range(5):
                lake.topic("t").append(values(*(f"{number}" for _ in range(9)), partition=[0, 1, 1] * 3))
            reader = Lake(s3.uri, options=options)
            assert sum(batch.num_rows for p in (0, 1) for batch in reader.topic("t").read(p)) == 45
        found: Counter[str] = Counter()
        for opened in (lake, reader):
            assert isinstance(opened.storage, ObjectStorage)
            for kind, n in opened.storage.requests.counts().by_kind.items():
                found[re.sub("ranged_", "", {RequestKind.CONDITIONAL_PUT: "create"}.get(kind, kind.value))] += n
        assert found == +proxy.counts
