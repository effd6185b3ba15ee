"""The parts of tidelog in native code, which are optional: where there is no compiler, Python does what they do.

Everything else that setuptools must know is in pyproject.toml.
"""

import hashlib
from pathlib import Path

from setuptools import Extension, setup


def native(name: str, *sources: str) -> Extension:
    """A module that is built from sources in its folder; what is compiled comes first.

    By a digest of them `tidelog.log.base.native_code` sees whether what is built is of the sources that are there.
    """
    folder = Path("platform", *name.split(".")[:-1])
    paths = [folder / source for source in sources]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
    return Extension(
        name,
        [str(paths[0])],
        depends=[str(path) for path in paths[1:]],
        include_dirs=[str(folder)],
        define_macros=[("TIDELOG_SOURCE", f'"{digest}"')],
        optional=True,
    )


setup(
    ext_modules=[
        native("tidelog.broker.records.native", "native.pyx", "pages.pxi", "crc32c.h"),
        native("tidelog.broker.records.native_lz4", "native_lz4.pyx"),
        native("tidelog.broker.wire.native_produce", "native_produce.pyx"),
        native("tidelog.log.segments.native_tiny", "native_tiny.pyx", "crc32.h"),
        native("tidelog.log.storage.native_files", "native_files.pyx"),
    ],
    options={"build_ext": {"cython_c_in_temp": True}},
)
