"""How a typed topic's table comes to know the schemas that a writer's values have: asked before records are staged."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from tidelog.log.delta.schema import COLUMNS, HEADERS
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.typed.value_typing import Guid, Typing
from tidelog.log.upkeep.lake_context import Subjects
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema

# Schemas that one batch may make a table look for: values that only look like framed ones name any number of ids.
_MOST_AT_ONCE = 100
_NO_HEADERS = pa.nulls(0, HEADERS)  # pa.array would load pandas


@dataclass(frozen=True, slots=True)
class Growth:
    """A typed topic, the subject of its values' schemas, and where these are. `commit` lets the table know schemas."""

    topic: str
    typing: Typing
    subject: str
    subjects: Subjects
    commit: Callable[[list[WrittenSchema]], object]

    def run(self, table: pa.Table) -> None:
        """Find the schemas that a table's values have and the topic doesn't know, and commit them.

        `table` as `tidelog.log.records.checks.to_records` takes it; what is wrong with it is for that to say. A schema
        that can't be had is not asked for again for some seconds.
        """
        usable = [one for one in {one.id: one for one in self._wanted(table)}.values() if self._is_usable(one)]
        if usable:
            self.commit(usable)
            for one in usable:  # the table knows them now, so that no writer asks, unless it takes no more
                self._remember(one, "the table knows as many schemas as it takes")

    def _wanted(self, table: pa.Table) -> Iterable[WrittenSchema]:
        names = table.schema.names
        if COLUMNS in names and "value" not in names:
            newest = self.subjects.newest(self.subject, now=self.typing.newest is None)
            is_new = newest is not None and newest.id != self.typing.newest
            return [newest] if newest is not None and is_new and self._may_ask(newest.id) else []
        named = _unknown(self.typing, table) if "value" in names else set()
        asked = [one for one in sorted(named, key=str) if self._may_ask(one)][:_MOST_AT_ONCE]
        return [one for one in (self.subjects.schema(one, self.subject) for one in asked) if one is not None]

    def _is_usable(self, schema: WrittenSchema) -> bool:
        if schema.kind != self.typing.kind:
            self._remember(schema, f"it is of the type {schema.kind.upper()}, and value.columns is {self.typing.kind}")
            return False
        try:
            compile_schema(*schema.meaning)
        except SchemaError as e:
            self._remember(schema, str(e))
            return False
        return True

    def _may_ask(self, named: int | Guid) -> bool:
        """Whether the schema is not one that could not be had a moment ago."""
        questions = ((self.subject, named), (self.topic, self.subject, named))
        return all(self.subjects.why_not(question) is None for question in questions)

    def _remember(self, schema: WrittenSchema, why: str) -> None:
        self.subjects.remember((self.topic, self.subject, schema.id), why)
        if schema.guid is not None:
            self.subjects.remember((self.topic, self.subject, bytes.fromhex(schema.guid)), why)


def _unknown(typing: Typing, table: pa.Table) -> set[int | Guid]:
    """Which schemas the values name that the topic doesn't know."""
    values = table.column("value")
    headers = table.column("headers") if "headers" in table.schema.names else None
    try:
        values = values if values.type == pa.binary() else values.cast(pa.binary())
        if headers is None or headers.null_count == len(headers):
            pairs = ((chunk, _NO_HEADERS) for chunk in values.chunks)
        else:
            batches = pa.table({"value": values, "headers": headers.cast(HEADERS)}).to_batches()
            pairs = ((batch.column("value"), batch.column("headers")) for batch in batches)
    except (pa.ArrowException, TypeError):
        return set()
    return {one for given, named in pairs for one in typing.unknown(given, named)}
