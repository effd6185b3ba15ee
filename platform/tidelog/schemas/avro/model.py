"""The types of an Avro schema (specification of Avro 1.12, "Schema Declaration")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.schemas.base.json_text import Json

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED: Final = ("record", "error", "enum", "fixed")
# Stands for a default that isn't there, since null is one.
ABSENT: Final[Any] = object()


@dataclass(eq=False, slots=True)
class AvroField:
    """A field of a record. `order` is None where it is ascending; `props`: keys that Avro gives no meaning."""

    name: str
    type: "AvroType"
    default: Json = ABSENT
    doc: str | None = None
    order: str | None = None
    aliases: tuple[str, ...] = ()
    props: Mapping[str, Json] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class AvroType:
    """A type; a named one is one object wherever it is used, also inside itself.

    `kind`: a primitive's name, "record", "error", "enum", "fixed", "array", "map" or "union". `inner`: of an array or a
    map, the one type inside; of a union, its branches. `default`: of an enum. `props`: keys that Avro gives no meaning
    there, logical types among them. `least`: what `columns.least_bytes` has found, -1 before.
    """

    kind: str
    namespace: str = ""
    name: str = ""
    inner: list["AvroType"] = field(default_factory=list)
    fields: list[AvroField] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    size: int = 0
    default: str | None = None
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    props: Mapping[str, Json] = field(default_factory=dict)
    least: int = -1

    @property
    def full_name(self) -> str:
        """The name with its namespace; a type that has none is called by its kind."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name or self.kind
