"""Which reader of record batches this installation has: the native one, or the one in Python."""

from typing import Final

from tidelog.log.base.native_code import native_module

NATIVE, _WHY_NOT = native_module("tidelog.broker.records.native", "native.pyx", "pages.pxi", "crc32c.h")
# What batches are read in: the broker's log says it.
READER: Final = "native code" if NATIVE is not None else f"Python: {_WHY_NOT}"
