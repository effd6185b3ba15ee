"""Records that are put together when they are asked for a field: converters of most ask only for the bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import itemgetter
from typing import Any, Final, NamedTuple

from tidelog.connect.data.records import ConnectHeader, SourceRecord
from tidelog.connect.data.schema import ConnectSchema

# What differs from record to record, by its number in the layout.
Parts = Sequence[Any]


class Constant(NamedTuple):
    """A field's value that is the same in every struct of a layout."""

    value: Any


class StructLayout:
    """How structs of a schema are put together of a tuple of parts.

    `fields`: for each field of the schema, in its order, the number of the part that it is, another struct's layout,
    or a constant. A part is a value of its field's schema: the source answers for that.
    """

    def __init__(self, schema: ConnectSchema, fields: "Mapping[str, int | StructLayout | Constant]") -> None:
        self.schema = schema
        self.fields = {one.name: fields[one.name] for one in schema.fields}
        self.schemas = {one.name: one.schema for one in schema.fields}

    @classmethod
    def of_run(cls, schema: ConnectSchema, first: int = 0) -> "StructLayout":
        """A struct whose fields are parts that follow each other."""
        return cls(schema, {one.name: number for number, one in enumerate(schema.fields, first)})

    def unpacked(self, parts: Parts) -> dict[str, Any]:
        """The struct of parts."""
        return {name: _at(place, parts) for name, place in self.fields.items()}


def _at(place: int | StructLayout | Constant, parts: Parts) -> Any:
    if isinstance(place, StructLayout):
        return place.unpacked(parts)
    return place.value if isinstance(place, Constant) else parts[place]


def field_getter(places: Sequence[int]) -> Callable[[Parts], Parts]:
    """What takes the parts at some places."""
    if len(places) == 1:
        (place,) = places
        return lambda found: (found[place],)
    return itemgetter(*places) if places else lambda _: ()


_FIELDS: Final = tuple(one.name for one in fields(SourceRecord))


class RecordLayout(NamedTuple):
    """What records of one kind have in common. `key`: None of records without one."""

    topic: str
    key: StructLayout | None
    value: StructLayout
    source_partition: Mapping[str, Any]


class LazyRecord(SourceRecord):
    """A record whose key and value are put together when they are asked for; `parts` are those of both."""

    __slots__ = ("_headers", "_offset", "layout", "parts")

    layout: RecordLayout
    parts: Parts
    _headers: tuple[ConnectHeader, ...]
    _offset: Mapping[str, Any]

    def __init__(
        self, layout: RecordLayout, parts: Parts, offset: Mapping[str, Any], headers: tuple[ConnectHeader, ...] = ()
    ) -> None:
        keep = object.__setattr__  # records don't change
        keep(self, "layout", layout)
        keep(self, "parts", parts)
        keep(self, "_offset", offset)
        keep(self, "_headers", headers)

    def but(self, **changes: Any) -> SourceRecord:  # type: ignore[override]
        """A record that is put together, with other values of some fields."""
        return SourceRecord(**{**{name: getattr(self, name) for name in _FIELDS}, **changes})

    @property
    def topic(self) -> str:
        """As of `ConnectRecord`, also below."""
        return self.layout.topic

    @property
    def partition(self) -> None:
        """The worker chooses."""

    @property
    def timestamp_ms(self) -> None:
        """The record has none."""

    @property
    def key(self) -> Any:
        """The key's struct."""
        return None if self.layout.key is None else self.layout.key.unpacked(self.parts)

    @property
    def key_schema(self) -> ConnectSchema | None:
        """The key's schema."""
        return None if self.layout.key is None else self.layout.key.schema

    @property
    def value(self) -> Any:
        """The value's struct."""
        return self.layout.value.unpacked(self.parts)

    @property
    def value_schema(self) -> ConnectSchema:
        """The value's schema."""
        return self.layout.value.schema

    @property
    def headers(self) -> tuple[ConnectHeader, ...]:
        """The headers."""
        return self._headers

    @property
    def source_partition(self) -> Mapping[str, Any]:
        """As of `SourceRecord`."""
        return self.layout.source_partition

    @property
    def source_offset(self) -> Mapping[str, Any]:
        """As of `SourceRecord`."""
        return self._offset
