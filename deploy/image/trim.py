"""Makes an environment of Python's smaller for an image: `trim.py FOLDER`.

What goes is what only a build or a test of the packages needs, and parts of Arrow that tidelog has no use for. Modules
are compiled: in a container that can't write files, each start would compile them again.
"""

import compileall
import py_compile
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

# Below the folder of packages. Arrow's own client of S3 is not needed: tidelog reaches stores by obstore. Its libraries
# are there by three names each, of which programs ask for the one that ends in one number.
UNUSED = (
    "pip", "pip-*", "setuptools", "setuptools-*", "pkg_resources", "_distutils_hack", "distutils-precedence.pth",
    "*/tests", "numpy/*/tests", "numpy/_core/include", "numpy/f2py",
    "pyarrow/include", "pyarrow/src", "pyarrow/includes", "pyarrow/*.pxi", "pyarrow/*.pyx",
    "pyarrow/*flight*", "pyarrow/*_s3*", "pyarrow/libarrow*.so", "pyarrow/libarrow*.so.*.*.*",
    "pyspark/examples", "pyspark/licenses", "pyspark/data",
)  # fmt: skip
SCRIPTS = ("pip*", "activate*", "Activate*", "f2py*", "numpy-config")


def unused(environment: Path) -> Iterator[Path]:
    """The files and folders that go."""
    for packages in environment.glob("lib/python3*/site-packages"):
        for pattern in UNUSED:
            yield from packages.glob(pattern)
    for pattern in SCRIPTS:
        yield from (environment / "bin").glob(pattern)


def main(environment: Path) -> int:
    """Trim it; the exit code."""
    for path in [*unused(environment)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    # By what a module holds, not by its time: copies of layers may change that.
    how = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compiled = compileall.compile_dir(environment / "lib", quiet=2, workers=0, invalidation_mode=how)
    return 0 if compiled or any(environment.glob("lib/python3*/site-packages/tidelog/__pycache__")) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
