"""The same calls get the same answers from every adapter, whatever the calls."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from support import versitygw
from support.storage_adapters import ADAPTERS, INSIDE, names, write

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage import Storage

# Few names, so that calls meet; none is a folder of another.
FOLDERS = ["log", "log/sub", "log-2", "topic/partition=1"]
PATHS = ["root.json", *(f"{folder}/{name}" for folder in FOLDERS for name in ("000", "001", "_x", "b"))]

paths = st.sampled_from(PATHS)
folders = st.sampled_from(["", "topic", "missing", *FOLDERS])
contents = st.binary(max_size=4)
calls = st.one_of(
    st.tuples(st.sampled_from(["put", "put_if_absent", "create"]), paths, contents),
    st.tuples(st.sampled_from(["get", "head", "open", "delete", "sync"]), paths),
    st.tuples(st.just("list_after"), folders, st.sampled_from(["", "000", "0005", "a", "~"])),
    st.tuples(st.just("list_folders"), folders),
)


def answer(storage: Storage, method: str, *arguments: str) -> object:
    match method:
        case "create":
            return write(storage, *arguments)
        case "head":
            return storage.head(*arguments).size
        case "sync":
            storage.sync(arguments)  # what it answers differs: an object store looks at nothing
            return None
        case "list_after":
            return names(storage, *arguments), [found.size for found in storage.list_after(*arguments)]
        case "open":
            with storage.open(*arguments) as file:
                return file.read()
        case _:
            return getattr(storage, method)(*arguments)


def answers(storage: Storage, script: list[tuple]) -> list[object]:
    given: list[object] = []
    for call in script:
        try:
            given.append(answer(storage, *call))
        except ObjectNotFoundError:
            given.append("not found")
    return given


def check_agreement(script: list[tuple], adapters: Iterable[str]) -> dict[str, list[object]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        given = {name: answers(ADAPTERS[name](root / str(i)), script) for i, name in enumerate(adapters)}
    for name in given:
        # A local disk keeps the folders of deleted objects, which only list_folders shows.
        shown = [a for call, a in zip(script, given[name], strict=True) if call[0] != "list_folders"]
        expected = [a for call, a in zip(script, given["memory"], strict=True) if call[0] != "list_folders"]
        assert shown == expected, name
    return given


@given(st.lists(calls, max_size=25))
def test_all_adapters_agree(script: list[tuple]):
    given = check_agreement(script, [name for name in INSIDE if "files" not in name])
    assert given["objects in memory"] == given["memory"]


@given(st.lists(calls, max_size=25))
def test_an_s3_server_agrees(script: list[tuple]):
    versitygw.why_not()
    given = check_agreement(script, ["memory", "s3"])
    assert given["s3"] == given["memory"]
