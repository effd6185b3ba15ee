"""What an object store's answers become: each shape that the adapter relies on, from a scripted server."""

import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from obstore.exceptions import GenericError, NotSupportedError
from obstore.store import MemoryStore, S3Store
from support.scripted_http import Answer, ScriptedServer, scripted_server
from support.storage_adapters import write

from tidelog.log.base.errors import (
    ObjectNotFoundError,
    StorageError,
    StoragePermissionError,
    StorageUnavailableError,
)
from tidelog.log.storage import ObjectStorage, objects
from tidelog.log.storage.ranged import READ_AT_LEAST_BYTES

ACCESS_KEY, SECRET = "AKIAEXAMPLEKEY", "wJalrXUtnFEMIexample"


def reply(status: int, code: str = "Oops") -> Answer:
    """An error as S3 sends it; a refused signature is quoted back."""
    body = f"<Error><Code>{code}</Code><AWSAccessKeyId>{ACCESS_KEY}</AWSAccessKeyId><Key>{SECRET}</Key></Error>"
    return Answer(status, body.encode())


OK = Answer(200, b"", (("ETag", '"1"'),))
DROP = Answer(0)
MODIFIED = ("Last-Modified", "Sat, 21 Nov 2026 00:00:00 GMT")
FOUND = Answer(200, b"", (("ETag", '"1"'), ("content-length", "3"), MODIFIED))


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as scripted:
        yield scripted


@pytest.fixture
def storage(server: ScriptedServer) -> ObjectStorage:
    """A store that repeats a request once, at once."""
    server.script, server.seen = [], []
    store = S3Store(
        "bucket",
        prefix="lake",
        config={
            "endpoint": server.url,
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET,
            "region": "us-east-1",
        },
        client_options={"allow_http": True, "timeout": "5s"},
        retry_config={
            "max_retries": 1,
            "backoff": {"init_backoff": timedelta(milliseconds=1), "max_backoff": timedelta(milliseconds=2), "base": 2},
        },
    )
    return ObjectStorage("s3://bucket/lake", store=store)


# --- put_if_absent -----------------------------------------------------------------------------------------

PUT_IF_ABSENT: list[tuple[str, list[Answer], bool | type[StorageError]]] = [
    ("stored", [OK], True),
    ("stored at the second try", [reply(500), OK], True),
    ("somebody was first", [reply(412)], False),
    ("our own first try was first", [reply(500), reply(412)], False),
    ("the answer got lost, and it was stored", [DROP, reply(412)], False),
    ("a conflict, and an object is there", [reply(409), FOUND], False),
    ("a conflict, and nothing is there", [reply(409), reply(404)], StorageUnavailableError),
    ("a conflict, and a look is denied", [reply(409), reply(403)], StorageUnavailableError),
    ("a conflict, and no answer", [reply(409), DROP, DROP], StorageUnavailableError),
    ("no answer", [DROP, DROP], StorageUnavailableError),
    ("server error", [reply(500), reply(500)], StorageUnavailableError),
    ("too fast", [reply(503, "SlowDown"), reply(503, "SlowDown")], StorageUnavailableError),
    ("too many", [reply(429), reply(429)], StorageUnavailableError),
    ("denied", [reply(403, "AccessDenied")], StoragePermissionError),
    ("unknown who", [reply(401)], StoragePermissionError),
    ("denied, after a try that may have been stored", [reply(500), reply(403)], StorageUnavailableError),
    ("refused", [reply(400, "InvalidArgument")], StorageError),
    ("refused, after a try that may have been stored", [DROP, reply(400)], StorageUnavailableError),
    ("no bucket", [reply(404, "NoSuchBucket")], StorageError),
]


def result(call: Callable[[], object]) -> object:
    """What the call returns, or the class of its error, which must keep every secret."""
    try:
        return call()
    except StorageError as error:
        shown = "".join(traceback.format_exception(error))
        assert ACCESS_KEY not in shown
        assert SECRET not in shown
        return type(error)


@pytest.mark.parametrize(("script", "expected"), [c[1:] for c in PUT_IF_ABSENT], ids=[c[0] for c in PUT_IF_ABSENT])
def test_put_if_absent(
    storage: ObjectStorage, server: ScriptedServer, script: list[Answer], expected: bool | type[StorageError]
):
    server.script = list(script)
    assert result(lambda: storage.put_if_absent("log/1", b"1")) is expected
    assert server.script == []
    assert server.seen[0] == "PUT /bucket/lake/log/1"


def test_errors_say_what_and_where_and_why(storage: ObjectStorage, server: ScriptedServer):
    server.script = [reply(403, "SignatureDoesNotMatch")]
    with pytest.raises(StoragePermissionError, match=r"s3://bucket/lake/log/1.*403 Forbidden.*SignatureDoesNotMatch"):
        storage.put_if_absent("log/1", b"1")
    server.script = [DROP, DROP]
    with pytest.raises(StorageUnavailableError, match=r"s3://bucket/lake/log/1.*\(\w+\)\. A write may or may not"):
        storage.put_if_absent("log/1", b"1")


def test_errors_say_how_often_it_was_tried_and_what_to_do(storage: ObjectStorage, server: ScriptedServer):
    server.script = [reply(503, "SlowDown"), reply(503, "SlowDown")]
    with pytest.raises(
        StorageUnavailableError, match=r"tried 2 times in \d.* 503 .*SlowDown.* larger batches"
    ) as found:
        storage.get("log/1")
    assert "A write may" not in str(found.value)
    server.script = [DROP, DROP]
    with pytest.raises(StorageUnavailableError, match=r"tried 2 times in \d.*can be reached.*lake\.store\.retries"):
        storage.put("log/1", b"1")


@pytest.mark.parametrize(
    "words",
    [
        "error sending request for https://account.blob.core.windows.net/c/a?sv=1&sig=hunter2hunter2",
        "error sending request for https://user:hunter2hunter2@proxy:3128/",
        "bad header: Bearer hunter2hunter2",
        "non-2xx status code: 403 Forbidden: <Error>\n<StringToSign>hunter2hunter2</StringToSign></Error>",
        "Generic error: x\n\nDebug source:\nGeneric { key: hunter2hunter2 }",
    ],
)
def test_credentials_are_in_no_message(words: str):
    options = {"account_name": "acct", "token": "hunter2hunter2"}
    store = None if "Bearer" in words else MemoryStore()
    storage = ObjectStorage("az://container/lake", options, store=store)
    with pytest.raises(StorageError) as refused, storage.failing("put", "a"):
        raise GenericError(words)
    assert "hunter2" not in str(refused.value)


# --- the other methods -------------------------------------------------------------------------------------

DELETED = Answer(200, b"<DeleteResult><Deleted><Key>lake/a</Key></Deleted></DeleteResult>")
NOT_DELETED = Answer(
    200,
    b"<DeleteResult><Error><Key>lake/a</Key><Code>InternalError</Code><Message>m</Message></Error></DeleteResult>",
)
CALLS: dict[str, Callable[[ObjectStorage], object]] = {
    "get": lambda storage: storage.get("a"),
    "head": lambda storage: storage.head("a"),
    "open": lambda storage: storage.open("a"),
    "put": lambda storage: storage.put("a", b"1"),
    "create": lambda storage: write(storage, "a", b"1"),
    "delete": lambda storage: storage.delete("a"),
    "list_after": lambda storage: list(storage.list_after("f")),
    "list_after b": lambda storage: list(storage.list_after("f", "b")),
    "list_folders": lambda storage: storage.list_folders("f"),
}
READS = ["get", "head", "open", "list_after", "list_after b", "list_folders"]
WRITES = ["put", "create", "delete"]


def answers(names: list[str], script: list[Answer], kind: type[StorageError] | None) -> list[tuple]:
    return [(name, script, kind) for name in names]


@pytest.mark.parametrize(
    ("call", "script", "expected"),
    [
        *answers(["get", "head", "open"], [reply(404, "NoSuchKey")], ObjectNotFoundError),
        *answers(["get"], [reply(404, "NoSuchBucket")], StorageError),
        *answers([*READS, *WRITES], [reply(403)], StoragePermissionError),
        *answers([*READS, *WRITES], [reply(500), reply(500)], StorageUnavailableError),
        *answers([*READS, *WRITES], [DROP, DROP], StorageUnavailableError),
        *answers(READS, [reply(500), reply(403)], StoragePermissionError),
        *answers(WRITES, [reply(500), reply(403)], StorageUnavailableError),
        *answers([*READS, *WRITES], [reply(400)], StorageError),
        *answers(["put", "create"], [OK], None),
        *answers(["put", "create"], [reply(404, "NoSuchBucket")], StorageError),
        *answers(["delete"], [DELETED], None),
        *answers(["delete"], [reply(404, "NoSuchKey")], None),
        *answers(["delete"], [reply(404, "NoSuchBucket")], StorageError),
        *answers(["delete"], [NOT_DELETED], StorageUnavailableError),
    ],
)
def test_other_methods(
    storage: ObjectStorage, server: ScriptedServer, call: str, script: list[Answer], expected: type[StorageError] | None
):
    server.script = list(script)
    assert result(lambda: CALLS[call](storage)) is expected
    assert server.script == []


def test_sync_asks_nothing(storage: ObjectStorage, server: ScriptedServer):
    assert storage.sync(["a", "b"]) == []
    assert server.seen == []


def test_a_listing_after_a_name_starts_there_at_the_store(storage: ObjectStorage, server: ScriptedServer):
    server.script = [Answer(200, b"<ListBucketResult></ListBucketResult>")] * 2
    assert list(storage.list_after("f", "b")) == []
    assert list(storage.list_after("f")) == []
    assert "start-after=lake%2Ff%2Fb" in server.seen[0]
    assert "delimiter=%2F" in server.seen[1]


# --- uploads in parts --------------------------------------------------------------------------------------

STARTED = Answer(200, b"<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>")
LARGE = b"x" * 11_000_000


def test_a_failed_upload_in_parts_is_taken_back(storage: ObjectStorage, server: ScriptedServer):
    server.script = [STARTED, OK, Answer(204)]
    with pytest.raises(KeyError):
        write(storage, "a", LARGE, error=KeyError())
    assert server.seen[-1].startswith("DELETE /bucket/lake/a?uploadId=u1")
    assert not any("POST" in seen and "uploadId" in seen for seen in server.seen)


@pytest.mark.parametrize("abort", [Answer(204), reply(404, "NoSuchUpload"), reply(403)], ids=lambda a: str(a.status))
@pytest.mark.parametrize("last", [[reply(500), reply(404, "NoSuchUpload")], [DROP, DROP], [reply(500), reply(403)]])
def test_an_upload_whose_last_answer_is_lost_is_an_unknown_outcome(
    storage: ObjectStorage, server: ScriptedServer, last: list[Answer], abort: Answer
):
    server.script = [STARTED, OK, OK, *last, abort]
    assert result(lambda: write(storage, "a", LARGE)) is StorageUnavailableError
    assert server.seen[3].startswith("POST /bucket/lake/a?uploadId=u1")


def test_a_denied_upload_is_denied(storage: ObjectStorage, server: ScriptedServer):
    server.script = [reply(403)]
    assert result(lambda: write(storage, "a", LARGE)) is StoragePermissionError


# --- reading in ranges -------------------------------------------------------------------------------------


def ranges_of(storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges [start, end) that are asked for from now on."""
    ranges: list[tuple[int, int]] = []
    real = objects.obstore.get

    def seen(store: object, path: str, *, options: Any = None) -> Any:
        ranges.append(options["range"])
        return real(store, path, options=options)  # type: ignore[arg-type]

    monkeypatch.setattr(objects.obstore, "get", seen)
    return ranges


def test_a_large_read_is_one_request_and_small_ones_share_one(monkeypatch: pytest.MonkeyPatch):
    storage = ObjectStorage("s3://bucket/lake", store=MemoryStore())
    storage.put("a", bytes(10_000_000))
    ranges = ranges_of(storage, monkeypatch)
    with storage.open("a") as file:
        assert ranges == [(0, READ_AT_LEAST_BYTES)]
        assert len(file.read(READ_AT_LEAST_BYTES)) == READ_AT_LEAST_BYTES
        assert len(file.read(5_000_000)) == 5_000_000
        assert ranges[1:] == [(READ_AT_LEAST_BYTES, READ_AT_LEAST_BYTES + 5_000_000)]
        file.seek(6_000_000)
        assert [len(file.read(100)) for _ in range(50)] == [100] * 50
        assert ranges[2:] == [(6_000_000, 6_000_000 + READ_AT_LEAST_BYTES)]
        file.seek(-8, 2)
        assert [len(file.read(4)) for _ in range(3)] == [4, 4, 0]
    assert ranges[3:] == [(9_999_992, 10_000_000)]


def test_of_a_known_size_the_end_comes_first_or_all_of_it(monkeypatch: pytest.MonkeyPatch):
    storage = ObjectStorage("s3://bucket/lake", store=MemoryStore())
    storage.put("small", bytes(range(200)))
    storage.put("large", bytes(3_000_000))
    ranges = ranges_of(storage, monkeypatch)
    with storage.open("small", 200) as file:
        assert file.read() == bytes(range(200))
    assert ranges == [(0, 200)]
    with storage.open("large", 3_000_000) as file:
        file.seek(-1000, 2)
        assert len(file.read()) == 1000
        file.will_read([(0, 1000), (2000, 500_000), (2_000_000, 2_100_000)])
        assert ranges[1:] == [(2_934_464, 3_000_000), (0, 500_000), (2_000_000, 2_100_000)]
        for at in (0, 400_000, 2_050_000):
            file.seek(at)
            assert len(file.read(1000)) == 1000
    assert len(ranges) == 4


@pytest.mark.parametrize("said", [0, 1, 99, 101, 5_000_000])
@pytest.mark.parametrize("data", [b"", bytes(range(100))], ids=["empty", "100 bytes"])
def test_a_wrong_size_does_no_harm(data: bytes, said: int):
    storage = ObjectStorage("s3://bucket/lake", store=MemoryStore())
    storage.put("a", data)
    with storage.open("a", said) as file:
        assert file.seek(0, 2) == len(data)
        file.seek(0)
        assert file.read() == data


def test_where_the_object_is_shorter_than_was_said_the_store_is_asked_for_its_size(
    storage: ObjectStorage, server: ScriptedServer
):
    found = [Answer(206, b"abc", (("ETag", '"1"'), ("Content-Range", "bytes 0-2/3"), MODIFIED))]
    server.script = [reply(416, "InvalidRange"), FOUND, *found]
    with storage.open("a", 2_000_000) as file:
        assert file.read() == b"abc"
    assert [seen.partition(" ")[0] for seen in server.seen] == ["GET", "HEAD", "GET"]


def test_a_store_without_conditional_puts_is_refused(monkeypatch: pytest.MonkeyPatch):
    def unsupported(*args: object, **named: object) -> None:
        raise NotSupportedError("Operation not supported")

    monkeypatch.setattr(objects.obstore, "put", unsupported)
    with pytest.raises(StorageError, match="needs a store with conditional puts"):
        ObjectStorage("s3://bucket/lake", store=MemoryStore()).put_if_absent("a", b"1")
