"""Which modules in native code an installation has, and why not."""

import sys

import pytest
from support.native import native_records

from tidelog.log.base import native_code

NATIVE = "tidelog.broker.records.native", "native.pyx", "pages.pxi", "crc32c.h"


def test_a_module_built_from_other_sources_is_not_used(monkeypatch):
    native_records()
    native = sys.modules[NATIVE[0]]
    assert native_code.native_module(*NATIVE) == (native, "")
    monkeypatch.setattr(native, "SOURCE", "other")
    module, why = native_code.native_module(*NATIVE)
    assert module is None
    assert "make setup" in why


@pytest.mark.parametrize(
    ("error", "says"),
    [(ModuleNotFoundError("no module"), "was not built"), (ImportError("undefined symbol"), "symbol")],
)
def test_why_there_is_no_module_is_said(error, says, monkeypatch):
    def fails(name):
        raise error

    monkeypatch.setattr(native_code, "import_module", fails)
    native, why = native_code.native_module(*NATIVE)
    assert native is None
    assert says in why
