"""The repository as the tidy rules see it: its files and its packages."""

import gc
import subprocess
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from tidy_source import Source, parse

ROOT = Path(__file__).resolve().parents[2]
PLATFORM = "platform"
OUTSIDE_THE_PACKAGE = (".ci", "tests", "benchmarks", "docs", "deploy")


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
def package_folders() -> Mapping[str, str]:
    """Module name by folder, of every folder with an `__init__.py` below `platform/` and what it links to."""
    return packages_of(files(), linked_folders(ROOT / PLATFORM / "tidelog"))


def linked_folders(inside: Path) -> list[str]:
    """The top folders of the repository that are links in the package."""
    return sorted(link.name for link in inside.iterdir() if link.is_symlink())


def packages_of(paths: Iterable[str], linked: Collection[str]) -> dict[str, str]:
    """Module name by folder.

    >>> packages_of(["platform/tidelog/log/__init__.py", "groups/rules/__init__.py"], ["groups"])
    {'platform/tidelog/log': 'tidelog.log', 'groups/rules': 'tidelog.groups.rules'}
    """
    found = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        first, _, rest = folder.partition("/")
        if name != "__init__.py" or not folder:
            continue
        if first == PLATFORM:
            found[folder] = rest.replace("/", ".")
        elif first in linked:
            found[folder] = f"tidelog.{folder.replace('/', '.')}"
    return found


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
    """The name under which a file is imported, "" when its folder is no package."""
    file = PurePosixPath(path)
    package = folders.get(str(file.parent), "")
    return package if not package or file.name == "__init__.py" else f"{package}.{file.stem}"
