"""Which store an address opens, and which addresses are refused."""

from pathlib import Path
from typing import Any

import pytest

from tidelog.log.base.errors import InvalidConfigError, InvalidUriError
from tidelog.log.lake import Lake
from tidelog.log.storage import LocalStorage, MemoryStorage, ObjectStorage, memory_storage, open_storage

AZURE = {"account_name": "acct", "account_key": "QUJDREVGR0g="}


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        ("/data/lake", "file:///data/lake"),
        ("/data/my lake/", "file:///data/my lake"),
        ("file:///data/lake", "file:///data/lake"),
        ("file:///data/lake/", "file:///data/lake"),
        ("file:/data/lake", "file:///data/lake"),
        ("FILE:///data/lake", "file:///data/lake"),
        ("/data/../lake", "file:///lake"),
        ("./a:b", None),
        ("a/b:c", None),
        ("lake", None),
        ("./lake", None),
    ],
)
def test_local_addresses(address: str, uri: str | None):
    storage = open_storage(address)
    assert isinstance(storage, LocalStorage)
    assert storage.uri == (uri or f"file://{Path.cwd() / address}")
    assert open_storage(storage.uri).uri == storage.uri


def test_a_path_is_an_address(tmp_path: Path):
    assert open_storage(tmp_path / "lake").uri == f"file://{tmp_path}/lake"
    with Lake(tmp_path / "lake") as lake:
        assert lake.uri == f"file://{tmp_path}/lake"


@pytest.mark.parametrize("address", [None, 5, b"/data/lake"])
def test_what_is_no_text_and_no_path_is_no_address(address: Any):
    with pytest.raises(
        InvalidUriError, match=rf"The lake's address is {type(address).__name__}\. Pass a text or a Path"
    ):
        open_storage(address)


@pytest.mark.parametrize(
    ("address", "options", "uri"),
    [
        ("s3://bucket/lake", {"region": "r"}, "s3://bucket/lake"),
        ("s3://bucket", {"AWS_REGION": "r"}, "s3://bucket"),
        ("s3a://bucket/a/b/", {"region": "r"}, "s3a://bucket/a/b"),
        ("gs://bucket/lake", {}, "gs://bucket/lake"),
        ("az://container/lake", AZURE, "az://container/lake"),
        ("abfss://c@acct.dfs.core.windows.net/p", AZURE, "abfss://c@acct.dfs.core.windows.net/p"),
        ("s3://b/l", {"region": "r", "timeout": "5s", "AWS_ALLOW_HTTP": "true", "endpoint": "http://h"}, "s3://b/l"),
    ],
)
def test_object_stores(address: str, options: dict[str, str], uri: str):
    storage = open_storage(address, options)
    assert isinstance(storage, ObjectStorage)
    assert storage.uri == uri


def test_one_store_in_memory_per_name():
    store = open_storage("memory://test-opening")
    assert isinstance(store, MemoryStorage)
    assert store is open_storage("memory://test-opening/") is memory_storage("test-opening")
    assert store is not open_storage("memory://test-opening-other")
    assert store.uri == "memory://test-opening"


@pytest.mark.parametrize("path", ["/data/100%", "file:///data/my%20lake", "/data/a#b"])
def test_a_folder_that_others_would_read_as_another_is_refused(path: str):
    with pytest.raises(InvalidUriError, match="have meanings on which"):
        open_storage(path)


@pytest.mark.parametrize(
    ("address", "options", "message"),
    [
        ("/data/lake", {"region": "r"}, "takes no options, but got region"),
        ("memory://m", {"b": "1", "a": "2"}, "takes no options, but got a, b"),
        ("s3://bucket/lake", {"colour": "blue"}, "'colour' is not valid"),
        ("s3://bucket/lake", {"region": "r", "allow_http": "perhaps"}, "failed to parse"),
        ("s3://bucket/lake", {"region": "r", "secret_access_key": "hunter2hunter2"}, "Missing AccessKeyId"),
        ("az://container/lake", {}, "Account must be specified"),
    ],
)
def test_options_that_are_refused(address: str, options: dict[str, str], message: str):
    with pytest.raises(InvalidConfigError, match=message) as caught:
        open_storage(address, options)
    assert "hunter2" not in str(caught.value)
