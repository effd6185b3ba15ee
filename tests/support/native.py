"""The native parts of the product, where they were built."""

import os

import pytest
from support.tools import require

from tidelog.broker.records import unpacking
from tidelog.broker.records.columns import RecordCodec
from tidelog.broker.records.reader import NATIVE, READER
from tidelog.broker.wire import plain_produce
from tidelog.log.segments import tiny_parquet
from tidelog.log.storage import local_drafts


def native_records() -> RecordCodec:
    """The native codec of record batches; see `_require`."""
    _require(NATIVE is not None)
    from tidelog.broker.records.native_records import NativeRecords

    return NativeRecords()


def native_lz4() -> None:
    """There is the native look at LZ4; see `_require`."""
    _require(unpacking.NATIVE_LZ4 is not None)


def native_segments() -> None:
    """There is the native writer of segments; see `_require`."""
    _require(tiny_parquet.NATIVE is not None)


def native_files() -> None:
    """There are native files; see `_require`."""
    _require(local_drafts.NATIVE is not None)


def native_produce() -> None:
    """There is the native reader of requests of one batch; see `_require`."""
    _require(plain_produce.NATIVE is not None)


def _require(is_there: bool) -> None:
    """A test skips where the native part was not built, and fails in CI."""
    if is_there:
        return
    for tool in ("gcc", "Python.h"):
        require(tool)
    if os.environ.get("CI") == "true":
        pytest.fail(READER, pytrace=False)
    pytest.skip(READER)
