"""Columns of bytes as structs by a registry's schemas, and back, in Arrow: what Spark's workers run. No Spark."""

from collections.abc import Callable, Iterator
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import InvalidRecordError
from tidelog.schemas.base.framing import framed, named_guid, split
from tidelog.schemas.base.value_schemas import ValueSchema
from tidelog.spark.fitting import fitted, why_unreadable

# The schema of an id or a guid, or why there is none.
Writers = Callable[[int | str], ValueSchema | str]
Rows = npt.NDArray[np.int64]

_NO_SCHEMA = "it names no schema: it does not begin with the magic byte 0 and an id, as a registry's serializers write"


class ColumnDecoder:
    """Values of n records to n rows of a reader's columns; null for null, and for a value that doesn't fit.

    `fail_fast`: such a value raises `InvalidRecordError` instead.
    """

    def __init__(self, reader: ValueSchema, writers: Writers, *, fail_fast: bool) -> None:
        if reader.columns is None:
            raise ValueError("a reader's schema has columns")
        self._reader = reader
        self._kind = reader.columns
        self._writers = writers
        self._fail_fast = fail_fast
        self._judged: dict[int | str, ValueSchema | str] = {}

    def __call__(self, values: pa.Array, guids: pa.Array | None = None) -> pa.StructArray:
        """The rows. `guids`: the headers' values that name a record's schema, null where there is none."""
        values = values.cast(pa.binary())
        ids, payloads = split(values)
        pieces: list[pa.Array] = []
        places = np.full(len(values), -1, np.int64)
        filled = 0
        for named, rows, given in self._groups(values, ids, payloads, guids):
            made = self._decoded(named, given)
            pieces.append(made)
            places[rows] = np.arange(filled, filled + len(rows))
            filled += len(rows)
        if self._fail_fast and filled < len(values) - values.null_count:
            raise _misfit(_NO_SCHEMA)
        if len(pieces) == 1 and filled == len(values):
            return pieces[0]
        found = pa.concat_arrays([*pieces, pa.nulls(0, self._kind)])
        return found.take(pa.array(places, mask=places < 0))

    def _groups(
        self, values: pa.Array, ids: npt.NDArray[np.int32], payloads: pa.Array, guids: pa.Array | None
    ) -> Iterator[tuple[int | str, Rows, pa.Array]]:
        """Which rows name which schema, and their payloads."""
        if guids is not None and guids.null_count < len(guids):
            # A batch has few schemas: each header's value is looked at once.
            named = pc.if_else(values.is_valid(), guids.cast(pa.binary()), pa.scalar(None, pa.binary()))
            coded = named.dictionary_encode()
            places = coded.indices.fill_null(-1).to_numpy()
            for place, header in enumerate(coded.dictionary.to_pylist()):
                guid_header = named_guid(header)
                if guid_header is not None:
                    rows = np.flatnonzero(places == place)
                    ids[rows] = 0
                    bare = values.take(pa.array(rows))
                    if guid_header.indexes and self._reader.kind == "protobuf":
                        bare = pc.binary_join_element_wise(pa.scalar(guid_header.indexes), bare, b"")
                    yield str(UUID(bytes=guid_header.guid)), rows, bare
        for one in np.unique(ids[ids > 0]):
            rows = np.flatnonzero(ids == one)
            yield int(one), rows, payloads if len(rows) == len(ids) else payloads.take(pa.array(rows))

    def _decoded(self, named: int | str, payloads: pa.Array) -> pa.StructArray:
        writer = self._judged.get(named) or self._judge(named)
        if isinstance(writer, str):
            if self._fail_fast:
                raise _misfit(f"its schema {named} can't be read by the reader's: {writer}")
            return pa.nulls(len(payloads), self._kind)
        decoded = writer.decode(payloads)
        if self._fail_fast and not decoded.ok.all():
            payload = payloads[int(np.argmin(decoded.ok))].as_py()
            raise _misfit(f"its bytes are not of its schema {named}: {writer.problem(payload)}")
        try:
            return self._fit(decoded.columns)
        except pa.ArrowInvalid as error:
            if self._fail_fast:
                raise _misfit(f"its fields don't fit the reader's schema: {error}") from error
        return pa.concat_arrays([self._fit_one(decoded.columns.slice(row, 1)) for row in range(len(payloads))])

    def _judge(self, named: int | str) -> ValueSchema | str:
        writer = self._writers(named)
        if not isinstance(writer, str):
            writer = why_unreadable(writer, self._reader) or writer
            self._judged[named] = writer
        return writer

    def _fit(self, columns: pa.StructArray) -> pa.StructArray:
        return fitted(columns, self._kind, self._reader.defaults)

    def _fit_one(self, row: pa.StructArray) -> pa.StructArray:
        try:
            return self._fit(row)
        except pa.ArrowInvalid:
            return pa.nulls(1, self._kind)


class ColumnEncoder:
    """Rows of structs to values under a schema: behind its id, or bare with an id of 0."""

    def __init__(self, schema: ValueSchema, schema_id: int) -> None:
        if schema.columns is None:
            raise ValueError("a writer's schema has columns")
        self._schema = schema
        self._kind = schema.columns
        self._id = schema_id

    def __call__(self, columns: pa.StructArray) -> pa.BinaryArray:
        """The values; null for null. Raises `EncodingError` for a row that the schema can't write."""
        payloads = self._schema.encode(fitted(columns, self._kind, self._schema.defaults))
        return framed(payloads, np.full(len(columns), self._id, np.int32))


def _misfit(why: str) -> InvalidRecordError:
    return InvalidRecordError(
        f"A value does not fit: {why}. Read it with mode='PERMISSIVE', which gives null for such values, or with the"
        " schema that wrote it."
    )
