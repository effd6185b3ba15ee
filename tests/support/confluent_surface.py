"""The public surface of an installed confluent-kafka: modules, classes, methods, and what they take.

Run as a file by a Python that has confluent-kafka, it prints `vectors/confluent_surface.json`:
{module: {name: null | parameters | {member: null | parameters}}}, `""` being a class's constructor. Parameters are
[name, whether it has a default] in their order; those that are given by their names alone are marked "keyword". What
can't be found out, and what a module has from one that came before, is null: then only the name counts.
"""

import ast
import enum
import importlib
import inspect
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = ("", "admin", "aio", "deserializing_consumer", "error", "serialization", "serializing_producer")

Parameters = list[list[Any]]

_STUB: dict[str, Any] = {}


def surface(package: str = "confluent_kafka") -> dict[str, Any]:
    """Return the surface of an installed package."""
    root = importlib.import_module(package)
    _STUB.update(_stub(Path(root.__file__ or "").with_name("cimpl.pyi")))
    told: set[int] = set()
    return {
        "tidelog" + (f".{name}" if name else ""): _module(
            importlib.import_module(f"{package}.{name}".rstrip(".")), told
        )
        for name in MODULES
    }


def _module(module: ModuleType, told: set[int]) -> dict[str, Any]:
    found = {}
    for name in sorted(vars(module)):
        given = getattr(module, name)
        if name.startswith("_") or not _is_own(name, given):
            continue
        again = id(given) in told
        found[name] = None if again or not callable(given) else _described(given)
        if callable(given):
            told.add(id(given))
    return found


def _described(given: Any) -> Any:
    return _class(given) if isinstance(given, type) else _parameters(given)


def _is_own(name: str, given: Any) -> bool:
    """Whether it is part of the interface, and not something that a module imports for itself."""
    if isinstance(given, type) or inspect.isroutine(given):
        package, _, inside = str(given.__module__).partition(".")
        return package in ("confluent_kafka", "cimpl") and not inside.startswith("_serde")
    return name.isupper() and isinstance(given, int) and not isinstance(given, bool)


def _class(given: type) -> dict[str, Any]:
    if issubclass(given, enum.Enum):
        return {member.name: None for member in given}
    plain = dir(Exception) if issubclass(given, Exception) else []
    members = {name: _member(given, name) for name in dir(given) if not name.startswith("_") and name not in plain}
    if not plain:
        members |= {name: None for name in ("__enter__", "__aenter__", "__iter__", "__len__") if hasattr(given, name)}
    return {"": _parameters(given), **members}


def _member(given: type, name: str) -> Any:
    member = getattr(given, name)
    return _parameters(member, given) if callable(member) and not isinstance(member, type) else None


def _parameters(given: Any, owner: type | None = None) -> Parameters | None:
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return _by_stub(given, owner)
    kinds = inspect.Parameter
    named = [p for p in signature.parameters.values() if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
    if owner is not None and named and named[0].name == "self":
        named = named[1:]
    found: Parameters = [[p.name, p.default is not kinds.empty] for p in named]
    if any(p.kind is kinds.VAR_KEYWORD for p in signature.parameters.values()):
        documented = re.findall(r":param \S+ (\w+):", inspect.getdoc(given) or "")
        found += [[name, "keyword"] for name in documented if name not in {p.name for p in named}]
    open_ended = any(p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in signature.parameters.values())
    return None if open_ended and not found else found


def _by_stub(given: Any, owner: type | None) -> Parameters | None:
    if owner is None:
        found: Parameters | None = _STUB.get(given.__name__, {}).get("__init__") if isinstance(given, type) else None
        return found
    for base in owner.__mro__:
        if given.__name__ in _STUB.get(base.__name__, {}):
            known: Parameters = _STUB[base.__name__][given.__name__]
            return known
    return None


def _stub(path: Path) -> dict[str, dict[str, Parameters]]:
    """class -> method -> parameters, of functions that are written in C; of overloads all that there are."""
    found: dict[str, dict[str, Parameters]] = {}
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        for method in one.body if isinstance(one, ast.ClassDef) else []:
            if isinstance(one, ast.ClassDef) and isinstance(method, ast.FunctionDef):
                known = found.setdefault(one.name, {}).setdefault(method.name, [])
                known += [given for given in _of_stub(method.args) if given not in known]
    return {
        name: {m: given for m, given in methods.items() if m != "__init__" or given} for name, methods in found.items()
    }


def _of_stub(given: ast.arguments) -> Parameters:
    without = len(given.args) - len(given.defaults)
    positional: Parameters = [[arg.arg, at >= without] for at, arg in enumerate(given.args)][1:]
    return positional + [[arg.arg, "keyword"] for arg in given.kwonlyargs]


def text(found: dict[str, Any]) -> str:
    """Return the surface as JSON, one name a line."""
    lines = []
    for module, names in found.items():
        inside = ",\n".join(f"    {json.dumps(name)}: {json.dumps(names[name])}" for name in names)
        lines.append(f"  {json.dumps(module)}: {{\n{inside}\n  }}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(text(surface()))
