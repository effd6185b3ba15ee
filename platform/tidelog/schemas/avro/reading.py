"""Avro schemas from JSON, by Avro's rules of names and types. Errors name the place."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.schemas.avro.model import ABSENT, NAMED, PRIMITIVES, AvroField, AvroType
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.json_text import Json, loads, too_deep

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ORDERS: Final = ("ascending", "descending", "ignore")
_RECORD: Final = frozenset({"type", "name", "namespace", "doc", "fields", "aliases"})
# Keys that Avro gives a meaning, by where they are; all others are kept as properties.
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "record": _RECORD,
    "error": _RECORD,
    "enum": frozenset({"type", "name", "namespace", "doc", "symbols", "default", "aliases"}),
    "fixed": frozenset({"type", "name", "namespace", "doc", "size", "aliases"}),
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
    "field": frozenset({"name", "type", "doc", "default", "order", "aliases"}),
}


def read(text: str, references: Iterable[str] = (), *, strict: bool = True) -> tuple[AvroType, list[AvroType]]:
    """The type of a schema, and all named types of the schemas that it references, given as texts.

    Of references, those that others need come first. `strict`: by every rule that a registry has for new schemas. What
    one has taken is not judged again: then only what nothing could be read by is refused, an error is a record, a type
    may be in an object of its own, and a text that is no JSON is a type's name. Raises `SchemaError` with the place of
    the mistake.
    """
    reader = _Reader(strict=strict)
    load = loads if strict else json_or_name
    try:
        for other in references:
            reader.type_of(load(other), "", "#")
        named_types = list(reader.names.values())
        said = load(text)
        if not strict and isinstance(said, str) and said not in PRIMITIVES and said not in reader.names:
            raise SchemaError(
                f"The schema is '{said:.100}', which is neither JSON nor a type of Avro. Give the text: that of"
                " a file, not its name."
            )
        return reader.type_of(said, "", "#"), named_types
    except RecursionError:
        raise too_deep() from None


def json_or_name(text: str) -> Json:
    """A schema's JSON; a text that begins as none is a type's name. Raises `SchemaError`."""
    text = text.strip()
    if text[:1] not in ("{", "[", '"'):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"The schema is no JSON: {error}.") from error


class _Reader:
    """Reads types; `names` has every named one, by its full name."""

    def __init__(self, *, strict: bool) -> None:
        self.names: dict[str, AvroType] = {}
        self._strict = strict

    def type_of(self, value: Json, space: str, place: str) -> AvroType:
        """A type, in the namespace of what it is in."""
        if isinstance(value, str):
            return self._by_name(value, space, place)
        if isinstance(value, list):
            return self._union(value, space, place)
        if not isinstance(value, Mapping):
            raise _wrong(place, f"expected a type's name, an object or a list, found {value!r:.100}")
        kind = value.get("type")
        if isinstance(kind, list | Mapping) and not self._strict:
            return self.type_of(kind, space, place)
        if not isinstance(kind, str):
            raise _wrong(place, f"the object's type must be a type's name, found {kind!r:.100}")
        if kind in NAMED:
            return self._named(value, kind, space, place)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in value:
                raise _wrong(place, f"the {kind} has no {key}")
            inner = self.type_of(value[key], space, f"{place}/{key}")
            return AvroType(kind, inner=[inner], props=_others(value, kind))
        if kind in PRIMITIVES:
            return AvroType(kind, props={key: one for key, one in value.items() if key != "type"})
        return self._by_name(kind, space, place)

    def _by_name(self, name: str, space: str, place: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not space else f"{space}.{name}"
        named_type = self.names.get(full.removeprefix(".")) or self.names.get(name)
        if named_type is None:
            raise _wrong(place, f"the type '{full:.100}' is not defined; define it before, or add it to the references")
        return named_type

    def _union(self, branches: list[Json], space: str, place: str) -> AvroType:
        inner = [self.type_of(branch, space, f"{place}/{i}") for i, branch in enumerate(branches)]
        if self._strict:
            if any(branch.kind == "union" for branch in inner):
                raise _wrong(place, "a union has a union as its branch")
            twice = _first_repeated(branch.full_name for branch in inner)
            if twice is not None:
                raise _wrong(place, f"the union has {twice} twice")
        return AvroType("union", inner=inner)

    def _named(self, value: Mapping[str, Json], kind: str, space: str, place: str) -> AvroType:
        namespace, name = self._full_name(value, space, place)
        made = AvroType(
            kind if self._strict or kind != "error" else "record",
            namespace,
            name,
            doc=self._text(value, "doc", place),
            aliases=tuple(_full_alias(alias, namespace) for alias in self._names(value, "aliases", place)),
            props=_others(value, kind),
        )
        if self._strict and made.full_name in self.names:
            raise _wrong(place, f"the type '{made.full_name}' is defined twice")
        self.names[made.full_name] = made
        if kind == "enum":
            self._fill_enum(made, value, place)
        elif kind == "fixed":
            size = value.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:
                raise _wrong(place, f"the size of a fixed must be a number from 0 on, found {size!r:.100}")
            made.size = size
        else:
            fields = value.get("fields")
            if not isinstance(fields, list):
                raise _wrong(place, "the record has no list of fields")
            for i, one in enumerate(fields):
                made.fields.append(self._field(one, namespace, f"{place}/fields/{i}"))
            twice = _first_repeated(one.name for one in made.fields) if self._strict else None
            if twice is not None:
                raise _wrong(place, f"the record has the field '{twice}' twice")
        return made

    def _fill_enum(self, made: AvroType, value: Mapping[str, Json], place: str) -> None:
        made.symbols = tuple(self._names(value, "symbols", place, needed=True))
        made.default = self._text(value, "default", place)
        if self._strict:
            for symbol in made.symbols:
                self._check_name(symbol, place)
            if len({*made.symbols}) < len(made.symbols):
                raise _wrong(place, "the enum has a symbol twice")
            if made.default is not None and made.default not in made.symbols:
                raise _wrong(place, f"the enum's default '{made.default}' is none of its symbols")

    def _field(self, value: Json, space: str, place: str) -> AvroField:
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
            raise _wrong(place, "a field must be an object with a name")
        if "type" not in value:
            raise _wrong(place, f"the field '{value['name']}' has no type")
        order = self._text(value, "order", place)
        if self._strict and order is not None and order.lower() not in _ORDERS:
            raise _wrong(place, f"the order of a field is one of {', '.join(_ORDERS)}, found '{order}'")
        return AvroField(
            self._check_name(value["name"], place),
            self.type_of(value["type"], space, f"{place}/type"),
            value.get("default", ABSENT),
            self._text(value, "doc", place),
            None if order is None or order.lower() == "ascending" else order.lower(),
            tuple(self._names(value, "aliases", place)),
            _others(value, "field"),
        )

    def _full_name(self, value: Mapping[str, Json], space: str, place: str) -> tuple[str, str]:
        name, namespace = value.get("name"), self._text(value, "namespace", place)
        if not isinstance(name, str):
            raise _wrong(place, f"the {value['type']} has no name")
        if "." in name:
            namespace, name = name.rpartition(".")[::2]
        elif namespace is None:
            namespace = space
        self._check_name(name, place)
        for part in namespace.split(".") if namespace else ():
            self._check_name(part, place)
        if self._strict and not namespace and name in PRIMITIVES:
            raise _wrong(place, f"a type can't be named '{name}', which is a primitive's name")
        return namespace, name

    def _check_name(self, name: str, place: str) -> str:
        if self._strict and not _NAME.fullmatch(name):
            raise _wrong(place, f"'{name}' is no name: letters, digits and _ only, and no digit first")
        return name

    def _text(self, value: Mapping[str, Json], key: str, place: str) -> str | None:
        text = value.get(key)
        if text is None or isinstance(text, str):
            return text
        if self._strict:
            raise _wrong(place, f"{key} must be a text, found {text!r:.100}")
        return None

    def _names(self, value: Mapping[str, Json], key: str, place: str, *, needed: bool = False) -> list[str]:
        if needed and key not in value:
            raise _wrong(place, f"the {value['type']} has no list of {key}")
        names = value.get(key) or []
        if isinstance(names, list) and all(isinstance(one, str) for one in names):
            return names
        if needed or self._strict:
            raise _wrong(place, f"{key} must be a list of names, found {names!r:.100}")
        return []


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def _full_alias(alias: str, namespace: str) -> str:
    return alias if "." in alias or not namespace else f"{namespace}.{alias}"


def _others(value: Mapping[str, Json], kind: str) -> dict[str, Json]:
    return {key: one for key, one in value.items() if key not in _KEYS[kind]}


# --- defaults ----------------------------------------------------------------------------------------------

_INT, _LONG = range(-(2**31), 2**31), range(-(2**63), 2**63)


def check_defaults(root: AvroType) -> None:
    """Raise `SchemaError` where a field's default does not fit its type."""
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        for inner in (*node.inner, *(own.type for own in node.fields)):
            if inner not in seen:
                seen.add(inner)
                stack.append(inner)
        for own in node.fields:
            if own.default is not ABSENT and not _fits(own.default, own.type):
                raise SchemaError(
                    f"The default {own.default!r} of the field '{own.name}' in '{node.full_name}' is no "
                    f"{own.type.full_name}. Give a value of the field's type, or of one of its union's branches."
                )


def _fits(value: Json, node: AvroType) -> bool:
    """Whether a default's JSON is a value of a type (specification of Avro, table "field default values")."""
    match node.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            return (
                isinstance(value, int)
                and not isinstance(value, bool)
                and value in (_INT if node.kind == "int" else _LONG)
            )
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed":
            return isinstance(value, str)
        case "enum":
            return value in node.symbols
        case "array":
            return isinstance(value, list) and all(_fits(one, node.inner[0]) for one in value)
        case "map":
            return isinstance(value, Mapping) and all(_fits(one, node.inner[0]) for one in value.values())
        case "union":
            return any(_fits(value, branch) for branch in node.inner)
        case _:
            return isinstance(value, Mapping) and all(
                _fits(value[own.name], own.type) if own.name in value else own.default is not ABSENT
                for own in node.fields
            )


def _wrong(place: str, what: str) -> SchemaError:
    return SchemaError(f"The schema breaks Avro's rules at '{place}': {what}.")
