"""What a topic's metaData says of its values: read once for each metaData."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.disk_format import TYPED_FORMAT_VERSION
from tidelog.log.delta.schema import columns_of
from tidelog.log.delta.written_schemas import WrittenSchema, parse_written_schemas
from tidelog.log.state.topic_state import CONFIG_PREFIX, FORMAT, VALUE_DERIVED, VALUE_SCHEMAS
from tidelog.log.typed.growth import grown
from tidelog.log.typed.value_typing import Typing, Writer
from tidelog.schemas.compile import compile_schema

_NONE = "none"


def typing_of(metadata: Metadata | None) -> Typing | None:
    """The typing of a topic with this metaData; None for a topic whose values were never columns.

    Raises `CorruptLogError` for facts that can't be read. A writer's schema is compiled when it is first asked for.
    """
    if metadata is None or metadata.configuration.get(FORMAT) != str(TYPED_FORMAT_VERSION):
        return None
    own = metadata.configuration
    keys = ("value.columns", "value.bytes", "topic.validate", "value.schema.subject", "value.schema")
    settings = tuple(own.get(f"{CONFIG_PREFIX}{key}", "") for key in keys)
    try:
        return _typing(metadata.schema, own.get(VALUE_SCHEMAS, "[]"), settings, own.get(VALUE_DERIVED) == "true")
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptLogError(
            f"Topic '{metadata.name}': its metaData has facts about values that can't be read: {e}. Run 'tidelog check'"
            " to see what it holds, and restore the log folder from a copy."
        ) from e


def only_grown(before: Metadata | None, after: Metadata | None) -> bool:
    """Whether a topic's metaData is the same but for schemas of values that its table came to know."""
    if before is None or after is None or before == after:
        return before == after
    return _ungrown(before) == _ungrown(after) and before.configuration.get(FORMAT) == after.configuration.get(FORMAT)


def _ungrown(metadata: Metadata) -> Metadata:
    known = {key: value for key, value in metadata.configuration.items() if key != VALUE_SCHEMAS}
    return replace(metadata, schema="", configuration=known)


@lru_cache(256)
def _typing(schema: str, text: str, settings: tuple[str, ...], may_derive: bool) -> Typing:
    kind, stored, validate, subject, inline = settings
    schemas, columns = parse_written_schemas(text), columns_of(schema)
    return Typing(
        None if kind in ("", _NONE) else kind,
        stored or "keep",
        validate == "true",
        columns,
        Writers(schemas, columns),
        {bytes.fromhex(one.guid): one.id for one in schemas if one.guid is not None},
        newest_of(schemas, kind, subject, inline),
        may_derive,
    )


def newest_of(schemas: tuple[WrittenSchema, ...], kind: str, subject: str, inline: str) -> int | None:
    """The id of the schema that the configuration names: the inline one, or the subject's newest that is known."""
    if inline:
        return next((one.id for one in schemas if one.id < 0 and one.kind == kind and one.text == inline), None)
    found = [one for one in schemas if one.subject == subject and one.kind == kind and one.id > 0]
    return max(found, key=lambda one: (one.version or 0, one.id)).id if found else None


class Writers(Mapping[int, Writer]):
    """The writers' schemas of a table with these columns, by id; each is compiled when it is first asked for."""

    def __init__(self, schemas: tuple[WrittenSchema, ...], columns: pa.StructType | None) -> None:
        self._schemas = {one.id: one for one in schemas}
        self._columns = columns
        self._made: dict[int, Writer] = {}

    def __getitem__(self, number: int) -> Writer:
        writer = self._made.get(number)
        if writer is None:
            writer = self._made[number] = _writer(self._schemas[number], self._columns)
        return writer

    def __contains__(self, number: object) -> bool:
        return number in self._schemas

    def __iter__(self) -> Iterator[int]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def __reduce__(self) -> tuple[object, ...]:
        return Writers, (tuple(self._schemas.values()), self._columns)


def _writer(written: WrittenSchema, columns: pa.StructType | None) -> Writer:
    schema = compile_schema(*written.meaning)
    if schema.columns is None:
        return Writer(written.id, schema, whole=False)
    fitted = grown(columns, schema.columns)
    whole = schema.exact and not schema.left_out and not fitted.left_out and fitted.columns == columns
    return Writer(written.id, schema, whole)
