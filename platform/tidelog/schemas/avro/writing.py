"""Avro schemas as JSON, keys in the order in which Avro's Java library writes them: Confluent's canonical text."""

from collections.abc import Iterable, Mapping
from typing import Final

from tidelog.schemas.avro.model import ABSENT, NAMED, PRIMITIVES, AvroField, AvroType
from tidelog.schemas.base.json_text import Json, dumps

# The properties that say how a type is meant come first.
_LOGICAL: Final = ("logicalType", "precision", "scale")


def written(root: AvroType, known_types: Iterable[AvroType] = (), *, normalized: bool = False) -> str:
    """One line of JSON. `known_types` are written by their names, as is every named type after its first use.

    `normalized`: properties and aliases sorted, as are keys inside of properties and defaults.
    """
    writer = _AvroWriter({*known_types}, normalized)
    return dumps(writer.json(root, ""), sort_keys=False)


class _AvroWriter:
    def __init__(self, known: set[AvroType], normalized: bool) -> None:
        self._known = known
        self._normalized = normalized

    def json(self, node: AvroType, space: str) -> Json:
        """A type, as it is written in a namespace."""
        if node.kind == "union":
            return [self.json(branch, space) for branch in node.inner]
        if node.kind in NAMED:
            return self._named(node, space)
        if node.kind in ("array", "map"):
            key = "items" if node.kind == "array" else "values"
            return {"type": node.kind, key: self.json(node.inner[0], space), **self._props(node.props)}
        return {"type": node.kind, **self._props(node.props)} if node.props else node.kind

    def _named(self, node: AvroType, space: str) -> Json:
        if node in self._known:
            return _qualified(node.full_name, space)
        self._known.add(node)
        made: dict[str, Json] = {"type": node.kind, "name": node.name}
        if node.namespace != space:
            made["namespace"] = node.namespace
        if node.doc is not None:
            made["doc"] = node.doc
        if node.kind == "enum":
            made["symbols"] = list(node.symbols)
            if node.default is not None:
                made["default"] = node.default
        elif node.kind == "fixed":
            made["size"] = node.size
        else:
            made["fields"] = [self._field(own, node.namespace) for own in node.fields]
        made |= self._props(node.props)
        if node.aliases:
            made["aliases"] = [_qualified(alias, node.namespace) for alias in self._sorted(node.aliases)]
        return made

    def _field(self, own: AvroField, space: str) -> Json:
        made: dict[str, Json] = {"name": own.name, "type": self.json(own.type, space)}
        if own.doc is not None:
            made["doc"] = own.doc
        if own.default is not ABSENT:
            made["default"] = self._value(own.default)
        if own.order is not None:
            made["order"] = own.order
        if own.aliases:
            made["aliases"] = list(self._sorted(own.aliases))
        return made | self._props(own.props)

    def _props(self, props: Mapping[str, Json]) -> dict[str, Json]:
        if not self._normalized:
            return dict(props)
        first = [key for key in _LOGICAL if "logicalType" in props and key in props]
        return {key: self._value(props[key]) for key in (*first, *sorted({*props} - {*first}))}

    def _value(self, value: Json) -> Json:
        if not self._normalized:
            return value
        if isinstance(value, Mapping):
            return {key: self._value(value[key]) for key in sorted(value)}
        return [self._value(one) for one in value] if isinstance(value, list) else value

    def _sorted(self, names: tuple[str, ...]) -> Iterable[str]:
        return sorted({*names}) if self._normalized else names


def _qualified(full: str, space: str) -> str:
    namespace, _, name = full.rpartition(".")
    return name if namespace == space and name not in PRIMITIVES else full
