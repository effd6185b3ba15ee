"""Modules in native code, which an installation has where they could be built."""

import hashlib
from importlib import import_module
from pathlib import Path
from types import ModuleType


def native_module(name: str, *sources: str) -> tuple[ModuleType | None, str]:
    """A module in native code, or None and why it is not there.

    `sources`: the names of the files that it is built from, in its folder. Where they are there, as in a clone, they
    may be others than it was built from: then it is not used.
    """
    try:
        module = import_module(name)
    except ModuleNotFoundError:
        return None, "native code was not built at the installation, for want of a C compiler or Python's headers"
    except ImportError as e:
        return None, f"native code does not load: {e}"
    assert module.__file__ is not None
    paths = [Path(module.__file__).with_name(source) for source in sources]
    if all(path.exists() for path in paths):
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
        if digest != module.SOURCE:
            return None, "native code was built from other sources; `make setup` builds it again"
    return module, ""
