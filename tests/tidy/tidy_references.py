"""File paths and module names in prose: docstrings, comments and pages name what exists."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from tidy_source import Source, parse

# What looks like a path or a module of this repository and is none, by the file that mentions it.
FOREIGN = {
    ("tests/tidy/test_tidy_references.py", "doors.py"),  # a bad snippet
    ("tests/tidy/tidy_docs.py", "folder/file.py"),  # an example
    ("docs/format.md", "tidelog.retention.ms"),  # a fact of a table
    # classes of connectors, as a configuration names them
    ("docs/connect-connectors.md", "tidelog.connect.FolderSource"),
    ("docs/connect-connectors.md", "tidelog.connect.FolderSink"),
    ("docs/connect-connectors.md", "tidelog.connect.DeltaSink"),
    ("docs/connect-connectors.md", "tidelog.connect.SparkApplication"),
    ("docs/connect-connectors.md", "tidelog.connect.SparkDeltaSink"),
}
_PATH = re.compile(r"(?<![\w/.:$~{}<*-])((?:[\w-]+/)+[\w.-]+\.(?:py|md|sh|toml|yml)|[a-z]\w*\.py)\b")
_MODULE = re.compile(r"\b(?:tidelog|pyspark_tidelog|support)(?:\.\w+)+")


@cache
def prose(path: str, text: str) -> str:
    """A page's text, or the docstrings and comments of a Python file."""
    if not path.endswith(".py"):
        return text if path.endswith(".md") else ""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return "\n".join([*docstrings, *(line.partition("#")[2] for line in text.splitlines())])


def endings(files: Iterable[str]) -> set[str]:
    """The paths, and every end of each from one of its folders on: `a/b/c`, `b/c` and `c`."""
    return {"/".join(parts[first:]) for file in files for parts in [file.split("/")] for first in range(len(parts))}


def missing_paths(path: str, text: str, files: Collection[str]) -> Iterator[str]:
    """Paths in a Python file's prose that are no path, and no end of one, of `files`, which `endings` gives.

    For pages `tidy_docs.unknown_files` does it, which knows their folders, too.
    """
    if not path.endswith(".py"):
        return
    for name in _PATH.findall(prose(path, text)):
        if name not in files and (path, name) not in FOREIGN:
            yield f"{path}: there is no {name}"


def missing_modules(path: str, text: str, modules: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Dotted names in a file's prose below a package of `modules` (the names defined in each) that lead nowhere."""
    for dotted in _MODULE.findall(prose(path, text)):
        module = dotted
        while module and module not in modules:
            module = module.rpartition(".")[0]
        rest = dotted.removeprefix(module).lstrip(".").partition(".")[0]
        # `tidelog.end` is a table property, `tidelog.Lake` a name that is loaded when it is first used
        if (path, dotted) in FOREIGN:
            continue
        if rest and module not in ("", "tidelog") and rest not in modules[module]:
            yield f"{path}: there is no {dotted}"


def defined_names(source: Source) -> set[str]:
    """What a module defines or imports at its top, under any condition."""
    found = set()
    for node in source.tree.body:
        for inner in [node, *ast.walk(node)] if isinstance(node, ast.If | ast.Try) else [node]:
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(inner.name)
            elif isinstance(inner, ast.Import | ast.ImportFrom):
                found |= {alias.asname or alias.name for alias in inner.names}
            elif isinstance(inner, ast.Assign | ast.AnnAssign):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def names_by_module(sources: Collection[Source], texts: Mapping[str, str]) -> dict[str, set[str]]:
    """The names of each module of the package, and of the tests' `support`; a package has its modules' names, too."""
    support = [
        parse(text, path.removeprefix("tests/").removesuffix(".py").replace("/", "."), path)
        for path, text in texts.items()
        if path.startswith("tests/support/") and path.endswith(".py")
    ]
    found: dict[str, set[str]] = {"support": set()}
    for source in [*sources, *support]:
        found.setdefault(source.module, set()).update(defined_names(source))
    for module in list(found):
        package, _, name = module.rpartition(".")
        if package in found:
            found[package].add(name)
    return found
