"""The part of tidelog in native code, which is optional: where there is no compiler, Python does what it does.

Everything else that setuptools must know is in pyproject.toml.
"""

import hashlib
from pathlib import Path

from setuptools import Extension, setup

_FOLDER = Path("platform/tidelog/broker/records")
_SOURCES = ("native.pyx", "crc32c.h")
# By this `tidelog.broker.records.codec` sees whether what is built is of the sources that are there.
_DIGEST = hashlib.sha256(b"".join((_FOLDER / name).read_bytes() for name in _SOURCES)).hexdigest()

setup(
    ext_modules=[
        Extension(
            "tidelog.broker.records.native",
            [str(_FOLDER / "native.pyx")],
            depends=[str(_FOLDER / "crc32c.h")],
            include_dirs=[str(_FOLDER)],
            define_macros=[("TIDELOG_SOURCE", f'"{_DIGEST}"')],
            optional=True,
        )
    ],
    options={"build_ext": {"cython_c_in_temp": True}},
)
