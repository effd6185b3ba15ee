"""What the tidy rules look at: a Python file with its module name, its syntax tree and its imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """One Python file. `module` is its name as imported, "" for a file that no one imports by package."""

    path: str
    module: str
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, which each rule goes through."""
        return tuple(ast.walk(self.tree))

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def is_package(self) -> bool:
        return self.path.rpartition("/")[2] == "__init__.py"


def parse(text: str, module: str = "", path: str = "") -> Source:
    """A source from its text; without a path, a made-up one that fits the module."""
    return Source(path or f"{module.replace('.', '/')}.py", module, text, ast.parse(text))


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, at whatever depth: `from a import b` is `a.b`.

    A relative import keeps its leading dots.
    """
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}" if node.module else f"{base}{alias.name}"


def used_names(source: Source) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported or looked up, with import aliases resolved."""
    yield from imports(source)
    origins = dict(_aliases(source))
    for node in source.nodes:
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = _dotted(node).partition(".")
            if first in origins:
                yield node.lineno, f"{origins[first]}.{rest}" if rest else origins[first]


def calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Every call of something imported, with its full dotted name, import aliases resolved."""
    origins = dict(_aliases(source))
    for node in source.nodes:
        if isinstance(node, ast.Call):
            first, _, rest = _dotted(node.func).partition(".")
            if first in origins:
                yield node, f"{origins[first]}.{rest}" if rest else origins[first]


def _aliases(source: Source) -> Iterator[tuple[str, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of plain attributes, "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return base and f"{base}.{node.attr}"
    return ""
