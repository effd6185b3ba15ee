"""The repository as the tidy rules see it: its files, its packages and where they are mapped to."""

import gc
import subprocess
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from tidy_source import Source, parse

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE_THE_PACKAGE = ("tests", "benchmarks", "docs")


@cache
def files() -> tuple[str, ...]:
    """Paths that git tracks or would track, from the root; those deleted but not yet committed left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted({path for path in listed.split("\0") if path and (ROOT / path).is_file()}))


@cache
def texts() -> Mapping[str, str]:
    """The text of every file that is text."""
    found = {}
    for path in files():
        try:
            found[path] = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


@cache
def setuptools_table() -> Mapping[str, object]:
    """`[tool.setuptools]` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


@cache
def package_folders() -> Mapping[str, str]:
    """Module name by folder, as pyproject.toml maps them."""
    return {folder: module for module, folder in setuptools_table()["package-dir"].items()}


@cache
def python_sources() -> tuple[Source, ...]:
    """Every Python file."""
    gc.disable()  # looking through millions of nodes for garbage, over and over, takes most of the time
    try:
        return tuple(
            parse(text, module_name(path, package_folders()), path)
            for path, text in texts().items()
            if path.endswith(".py")
        )
    finally:
        gc.freeze()
        gc.enable()


@cache
def package_sources() -> tuple[Source, ...]:
    """Every Python file that is installed."""
    return tuple(source for source in python_sources() if source.module)


def module_name(path: str, folders: Mapping[str, str]) -> str:
    """The name under which a file is imported, "" when its folder is not mapped."""
    file = PurePosixPath(path)
    package = folders.get(str(file.parent), "")
    return package if not package or file.name == "__init__.py" else f"{package}.{file.stem}"
