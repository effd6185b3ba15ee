"""Which reader of record batches this installation has: the native one, or the one in Python."""

import hashlib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

_SOURCES: Final = ("native.pyx", "crc32c.h")


def _native() -> tuple[ModuleType | None, str]:
    """The native part, and why it is not there."""
    try:
        native = import_module("tidelog.broker.records.native")
    except ModuleNotFoundError:
        return (
            None,
            "native code was not built at the installation, for want of a C compiler or Python's headers",
        )
    except ImportError as e:
        return None, f"native code does not load: {e}"
    # Where the sources are, as in a clone, they may be others than it was built from.
    sources = [Path(__file__).with_name(name) for name in _SOURCES]
    if all(source.exists() for source in sources):
        digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
        if digest != native.SOURCE:
            return None, "native code was built from other sources; `make setup` builds it again"
    return native, ""


NATIVE, _WHY_NOT = _native()
# What batches are read in: the broker's log says it.
READER: Final = "native code" if NATIVE is not None else f"Python: {_WHY_NOT}"
