"""The native part of the product, where it was built."""

import os

import pytest
from support.tools import require

from tidelog.broker.records.columns import RecordCodec
from tidelog.broker.records.reader import NATIVE, READER


def native_records() -> RecordCodec:
    """The native codec of record batches; the test skips where it was not built, and fails in CI."""
    if NATIVE is None:
        for tool in ("gcc", "Python.h"):
            require(tool)
        if os.environ.get("CI") == "true":
            pytest.fail(READER, pytrace=False)
        pytest.skip(READER)
    from tidelog.broker.records.native_records import NativeRecords

    return NativeRecords()
