"""Rules of the layout: which folders are packages, and what files may be called."""

import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from tidy_repository import PLATFORM


def bare_folders(files: Iterable[str], packages: Collection[str], outside: Collection[str]) -> list[str]:
    """Folders with Python files that are no package: an installation would lack them."""
    folders = {PurePosixPath(path).parent for path in files if path.endswith(".py")}
    inside = (folder for folder in folders if folder.parts and folder.parts[0] not in outside)
    return sorted(str(folder) for folder in inside if str(folder) not in packages)


def wrong_links(root: Path, wanted: Collection[str]) -> Iterator[str]:
    """Top folders that are no links in the package, and links that lead elsewhere."""
    inside = root / PLATFORM / "tidelog"
    for name in sorted(wanted):
        link = inside / name
        if not link.is_symlink() or link.readlink() != PurePosixPath("../..", name):
            yield f"{PLATFORM}/tidelog/{name} must be a link to ../../{name}"
    for link in sorted(inside.rglob("*")):
        if link.is_symlink() and (link.parent != inside or link.name not in wanted):
            yield f"{link.relative_to(root)}: only top folders of the repository are links"


def tables_of(text: str, heading: str) -> list[str]:
    """The rows of a document's table whose first column has this heading."""
    return text.partition(f"\n| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]


def places_in(row: str) -> list[str]:
    """The folders and files that a row of a table names: what is in backticks and is no name of a module alone."""
    return re.findall(r"`([\w/]+(?:\.py)?)`", row)


def is_place(root: Path, place: str) -> bool:
    """Whether a folder or file of the package is there; the path may begin at the root, too."""
    return (root / PLATFORM / "tidelog" / place).exists() or (root / place).exists()


def standard_names(files: Iterable[str]) -> Iterator[str]:
    """Modules and package folders named like a module of the standard library."""
    for path in files:
        if path.endswith(".py"):
            parts = PurePosixPath(path).with_suffix("").parts
            for part in parts[1:] if parts[0] == PLATFORM else parts:
                if part in sys.stdlib_module_names:
                    yield f"{path}: {part} is a module of the standard library, take another name"


def repeated_test_files(files: Iterable[str]) -> Iterator[str]:
    """Test files of one name: pytest imports them by it, and runs only one of them in a process."""
    named: dict[str, list[str]] = {}
    for path in files:
        name = PurePosixPath(path).name
        if name.startswith("test_") and name.endswith(".py"):
            named.setdefault(name, []).append(path)
    for paths in named.values():
        if len(paths) > 1:
            yield f"{', '.join(sorted(paths))}: one name"


def shadowed_platform(root: Path) -> str:
    """Why `import platform` from a folder is not the standard library's, or ""."""
    if (root / PLATFORM / "__init__.py").exists():
        return "platform/__init__.py makes the folder hide the standard library's module: delete it"
    run = subprocess.run(
        [sys.executable, "-c", "import platform; platform.python_version(); print(platform.__file__)"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    found = run.stdout.strip()
    return "" if run.returncode == 0 and not Path(found).is_relative_to(root / PLATFORM) else run.stderr or found
