"""Suites of the unit layer, run a second time with their lakes on a real S3 server.

    globals().update(suite("test_transactions"))

in a test file collects that suite's tests there. What makes lakes for tests (`memory_lake`, `live_lake`,
`lake_address`, `tmp_path` of suites whose lakes are in folders) then makes them on the server. `FaultyStorage` stays
around the store, so that tests may still make it fail, and their clock counts for the times of objects.
"""

import importlib
import inspect
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pytest
from support import logs, producers, versitygw
from support.faults import FaultyStorage

from tidelog.log.base.clock import Clock
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.storage import ObjectInfo, ObjectStorage

TESTS = Path(__file__).parents[1]
SUITES = (TESTS / "unit", TESTS / "simulation")


class DatedStorage(ObjectStorage):
    """A place of its own on the server, with objects as old as a clock says: the server's own clock can't be moved."""

    def __init__(self, _: str, clock: Clock) -> None:
        place = _place()
        super().__init__(place.uri, place.options, environment={})
        self.clock = clock
        self.stored_ms: dict[str, int] = {}

    def put(self, path: str, data: bytes | memoryview) -> None:
        super().put(path, data)
        self.stored_ms[path] = self.clock.now_ms()

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        if stored := super().put_if_absent(path, data, before):
            self.stored_ms[path] = self.clock.now_ms()
        return stored

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        with super().create(path) as file:
            yield file
        self.stored_ms[path] = self.clock.now_ms()

    def head(self, path: str) -> ObjectInfo:
        found = super().head(path)
        return ObjectInfo(found.path, found.size, self.stored_ms[path])

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        for found in super().list_after(folder, after):
            yield ObjectInfo(found.path, found.size, self.stored_ms[found.path])


class DistantFaultyStorage(FaultyStorage):
    """A faulty store behind a network: it says so to callers that ask (`Distant`, `TakenOnTrust`)."""

    inner: ObjectStorage

    @property
    def place(self) -> str:
        return self.inner.place

    @property
    def proven(self) -> bool:
        return self.inner.proven

    @proven.setter
    def proven(self, seen: bool) -> None:
        self.inner.proven = seen

    def by_address(self) -> list[ObjectStorage]:
        return self.inner.by_address()

    def helpers(self) -> Helpers:
        return self.inner.helpers()


_folders: list[Path] = []


def _place() -> versitygw.S3Place:
    place = versitygw.server().place()
    _folders.append(place.folder)
    return place


@pytest.fixture(autouse=True, scope="module")
def places_are_removed() -> Iterator[None]:
    """A file's lakes go at its end, not a test's: clients that a test leaves open may still look at them."""
    yield
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)


@pytest.fixture(autouse=True)
def lakes_on_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What makes lakes makes them on the server, which the environment tells how to reach."""
    for module in (logs, producers):
        monkeypatch.setattr(module, "MemoryDisk", DatedStorage)
        monkeypatch.setattr(module, "FaultyStorage", DistantFaultyStorage)
    with versitygw.in_environment(versitygw.server().place().environment):
        yield


@pytest.fixture
def tmp_path() -> str:
    """A place on the server, for suites that use a folder for nothing but a lake."""
    return _place().uri


def _imported(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.relative_to(TESTS).with_suffix("").parts))


def suite(name: str, *without: str) -> dict[str, Any]:
    """The names of a test file of the lower layers and of its folder's conftest, to be a test file's own.

    `without` those of tests that are about another store, or that take long and say nothing more on this one.
    """
    # Another module than the lower layer's own `name`: what is set here, it doesn't see.
    (path,) = (path for folder in SUITES for path in folder.rglob(f"{name}.py"))
    module = _imported(path)
    shared = path.with_name("conftest.py")
    modules = [_imported(shared), module] if shared.exists() else [module]
    names = {key: value for one in modules for key, value in vars(one).items() if not key.startswith("__")}
    for left_out in without:
        del names[left_out]
    if "lake_address" in names:
        module.lake_address = lambda: _place().uri  # type: ignore[attr-defined]
    if "lake" in names and "tmp_path" in inspect.signature(inspect.unwrap(names["lake"])).parameters:
        names["tmp_path"] = tmp_path
    return {**names, "lakes_on_s3": lakes_on_s3, "places_are_removed": places_are_removed}
