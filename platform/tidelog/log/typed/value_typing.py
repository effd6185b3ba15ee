"""Values as columns: made of a batch's values where records are checked, and bytes again where they are read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import InvalidRecordError, InvalidValueError
from tidelog.log.delta import schema
from tidelog.log.typed.placing import placed, with_lacking
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.base.framing import HEADER, PREFIX_BYTES, NamedGuid, framed, guids_of, ids_of, split
from tidelog.schemas.base.value_schemas import ValueSchema

Bools = npt.NDArray[np.bool_]
I32 = npt.NDArray[np.int32]
# A registry's name of a schema besides its id, of 16 bytes.
Guid: TypeAlias = bytes

VALUE_SCHEMA, VALUE_LENGTH = (field.name for field in schema.TYPED)


@dataclass(frozen=True, slots=True)
class Writer:
    """A schema that values were written with. `whole`: each of its fields is a column, so bytes may be derived."""

    id: int
    schema: ValueSchema
    whole: bool


@dataclass(frozen=True, eq=False)
class Typing:
    """What a topic's table says of its values. Immutable, shared by threads, goes to other processes by pickle.

    `kind`: avro, json or protobuf; None where new values get no columns while older rows may have some. `bytes`:
    "keep", or "derive" for values that their columns give back. `columns`: the table's struct, None before the first
    schema is known. `writers` by id: a registry's are 1 and above, inline schemas -1, -2 and below. `guids`: the id
    of each guid. `newest`: under which id columns are encoded that come without bytes; None for none yet. `may_derive`:
    whether a segment may have derived values, of now or of earlier.
    """

    kind: str | None
    bytes: str
    validate: bool
    columns: pa.StructType | None
    writers: Mapping[int, Writer]
    guids: Mapping[Guid, int]
    newest: int | None
    may_derive: bool = False

    @cached_property
    def segment(self) -> pa.Schema:
        """The columns of a segment of this topic, in its order."""
        own = [] if self.columns is None else [pa.field(schema.COLUMNS, self.columns)]
        return pa.schema([*schema.SEGMENT, *schema.TYPED, *own])

    @property
    def is_inline(self) -> bool:
        """Whether values are bare payloads of one schema, the configuration's."""
        return self.newest is not None and self.newest < 0

    def unknown(self, values: pa.Array, headers: pa.Array) -> frozenset[int | Guid]:
        """Which ids, and guids of headers, these values name that are not among the writers."""
        if self.kind is None or self.is_inline:
            return frozenset()
        named = guids_of(headers)
        if named:
            bare = np.ones(len(values), np.bool_)
            bare[list(named)] = False
            values = values.filter(pa.array(bare))
        # A batch has few schemas: its prefixes are compared before they are read.
        ids = ids_of(pc.unique(pc.binary_slice(values, 0, PREFIX_BYTES)))
        found = {one for one in ids.tolist() if one > 0 and one not in self.writers}
        return frozenset(found | {one.guid for one in named.values() if one.guid not in self.guids})

    # --- columns of values ---------------------------------------------------------------------------------

    def apply(self, records: pa.Table, topic: str) -> pa.Table:
        """Records (columns as `tidelog.log.records.checks.to_records` gives) with the columns of their values.

        Added are `value_schema`, `value_length`, `columns`; `value` is null where it is derived. A value that names
        none of the writers, or doesn't fit its schema, keeps its bytes and gets no columns; with `validate` it is
        refused by `InvalidValueError`, which says which and why.
        """
        wanted = self.segment.remove(0)
        batches, refused, first = [], dict[int, str](), 0
        for batch in records.combine_chunks().to_batches():
            typed = _Values(self, batch)
            if self.validate and self.kind is not None:
                refused |= {first + row: why for row, why in typed.refused()}
            first += batch.num_rows
            if not refused:
                batches.append(typed.batch(wanted))
        if refused:
            raise InvalidValueError(topic, refused, alone=first == 1)
        return pa.Table.from_batches(batches, wanted)

    def bytes_for(self, columns: pa.Array, topic: str) -> pa.Array:
        """The values of columns that come without bytes: under the newest schema, a null row is a tombstone.

        Raises `InvalidRecordError` for what that schema can't hold, and where there is no schema yet.
        """
        writer = None if self.newest is None else self.writers.get(self.newest)
        if self.kind is None or writer is None or writer.schema.columns is None:
            raise InvalidRecordError(
                f"Topic '{topic}' takes no columns: it knows no schema to make bytes of them. Register a schema under"
                " its value.schema.subject and append a value that has it, or give the column 'value'."
            )
        try:
            payloads = writer.schema.encode(_filled(columns, writer.schema))
        except (EncodingError, pa.ArrowException) as e:
            raise InvalidRecordError(
                f"The columns for topic '{topic}' don't fit its schema {writer.id}: {str(e).removesuffix('.')}. Give"
                " each field a value of the type that the schema has."
            ) from e
        return payloads if writer.id < 0 else framed(payloads, np.full(len(payloads), writer.id, np.int32))

    # --- values of columns ---------------------------------------------------------------------------------

    def bytes_of(
        self, value: pa.Array, value_schema: pa.Array, value_length: pa.Array, columns: pa.Array | None
    ) -> pa.Array:
        """The values as their producers sent them, of a segment's columns.

        Raises ValueError where a derived value does not come out as long as it was.
        """
        derived = value_length.is_valid().to_numpy(zero_copy_only=False)
        if not derived.any():
            return value
        if columns is None:
            raise ValueError("values are to be derived of columns that it does not have")
        ids = value_schema.fill_null(0).to_numpy(zero_copy_only=False)
        order = np.arange(len(value))
        pieces = [value]
        count = len(value)
        for id_ in _distinct(ids[derived]):
            rows = np.flatnonzero(derived & (ids == id_))
            pieces.append(self._derived(id_, columns.take(pa.array(rows)), value_length.take(pa.array(rows))))
            order[rows] = np.arange(count, count + len(rows))
            count += len(rows)
        if len(pieces) == 2 and len(pieces[1]) == len(value):
            return pieces[1]
        return pa.concat_arrays(pieces).take(pa.array(order))

    def _derived(self, id_: int, columns: pa.Array, lengths: pa.Array) -> pa.Array:
        writer = self.writers.get(id_)
        if writer is None:
            raise ValueError(f"values are to be derived by schema {id_}, which the table does not know")
        try:
            payloads = encoded(writer.schema, columns)
        except EncodingError as e:
            raise ValueError(f"values can't be derived by schema {id_}: {e}") from e
        before = pc.subtract(lengths, pc.binary_length(payloads)).to_numpy(zero_copy_only=False)
        prefixed = before == PREFIX_BYTES
        if not (prefixed | (before == 0)).all():
            raise ValueError(f"values derived by schema {id_} are not as long as they were")
        return framed(payloads, np.where(prefixed, np.int32(id_), np.int32(0))) if prefixed.any() else payloads


def encoded(writer: ValueSchema, columns: pa.Array) -> pa.Array:
    """The payloads that a table's columns give under one schema; null for null. Raises `EncodingError`."""
    return writer.encode(placed(columns, writer.columns))


class _Values:
    """A batch of records, and what its values are by the schemas that they name.

    `ids`: of each record's schema, 0 where it names none. `fit`: the records whose columns were made.
    """

    def __init__(self, typing: Typing, batch: pa.RecordBatch) -> None:
        self._typing = typing
        self._batch = batch
        self._values = batch.column("value")
        count = len(self._values)
        self._named: dict[int, NamedGuid] = {}
        self.ids: I32 = np.zeros(count, np.int32)
        self.payloads = self._values
        self.fit: Bools = np.zeros(count, np.bool_)
        self._derived: Bools = np.zeros(count, np.bool_)
        self._columns: pa.Array | None = None
        if typing.kind is not None:
            self._name()
            self._decode()

    def _name(self) -> None:
        """Find out each record's schema, and what of its value is the payload."""
        typing = self._typing
        if typing.is_inline:
            self.ids = np.where(_valid(self._values), np.int32(typing.newest or 0), np.int32(0))
            return
        ids, payloads = split(self._values)
        self._named = guids_of(self._batch.column("headers"))
        if self._named:
            rows = np.fromiter(self._named, np.int64)
            ids[rows] = [typing.guids.get(one.guid, 0) for one in self._named.values()]
            ids[~_valid(self._values)] = 0
            bare = np.zeros(len(ids), np.bool_)
            bare[rows] = True
            payloads = pc.if_else(pa.array(bare), self._with_indexes(), payloads)
        self.ids, self.payloads = ids, payloads

    def _with_indexes(self) -> pa.Array:
        """The values, behind the message indexes of headers that have some."""
        if self._typing.kind != "protobuf":
            return self._values
        before = np.full(len(self._values), b"", object)
        before[[*self._named]] = [one.indexes for one in self._named.values()]
        return pc.binary_join_element_wise(pa.array(before, pa.binary()), self._values, b"")

    def _decode(self) -> None:
        """Make the columns of all that fits its schema."""
        typing = self._typing
        if typing.columns is None:
            return
        count = len(self.ids)
        pieces, order, made = [pa.nulls(1, typing.columns)], np.zeros(count, np.int64), 1
        for id_ in _distinct(self.ids):
            writer = typing.writers.get(id_)
            if writer is None or writer.schema.columns is None:
                continue
            rows = np.flatnonzero(self.ids == id_)
            payloads = self.payloads if len(rows) == count else self.payloads.take(pa.array(rows))
            decoded = writer.schema.decode(payloads)
            columns = placed(decoded.columns, typing.columns)
            self.fit[rows] = decoded.ok
            if typing.bytes == "derive" and writer.whole and writer.schema.exact:
                self._derived[rows] = decoded.ok & _same(writer.schema, columns, payloads)
            if len(rows) == count:
                self._columns = columns
                return
            pieces.append(columns)
            order[rows] = np.arange(made, made + len(rows))
            made += len(rows)
        if made > 1:
            self._columns = pa.concat_arrays(pieces).take(pa.array(order))

    def batch(self, wanted: pa.Schema) -> pa.RecordBatch:
        """The batch as a segment has it."""
        own = {
            "value": self._values,
            VALUE_SCHEMA: pa.array(self.ids, mask=~self.fit),
            VALUE_LENGTH: pa.nulls(len(self.ids), pa.int32()),
        }
        if self._derived.any():
            kept = pa.array(~self._derived)
            own["value"] = pc.if_else(kept, self._values, pa.scalar(None, pa.binary()))
            own[VALUE_LENGTH] = pc.if_else(kept, pa.scalar(None, pa.int32()), pc.binary_length(self._values))
        if schema.COLUMNS in wanted.names:
            own[schema.COLUMNS] = pa.nulls(len(self.ids), wanted.field(schema.COLUMNS).type)
            if self._columns is not None:
                own[schema.COLUMNS] = self._columns
        columns = [own[name] if name in own else self._batch.column(name) for name in wanted.names]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)

    def refused(self) -> Iterator[tuple[int, str]]:
        """The rows of values that don't fit, and why; a tombstone fits."""
        typing = self._typing
        writers = {id_: typing.writers.get(id_) for id_ in np.unique(self.ids).tolist()}
        lenient = [id_ for id_, writer in writers.items() if writer is not None and writer.schema.lenient]
        for row in np.flatnonzero((~self.fit | np.isin(self.ids, lenient)) & _valid(self._values)).tolist():
            writer = writers[int(self.ids[row])]
            if writer is not None:
                why = writer.schema.problem(self.payloads[row].as_py())
                if why is not None:
                    yield row, f"it does not fit schema {writer.id}: {why}"
            elif row in self._named:
                yield (
                    row,
                    f"its header '{HEADER}' names {self._named[row].guid.hex()}, which is no schema of the subject",
                )
            elif self.ids[row]:
                yield row, f"it names schema {self.ids[row]}, which is not one of the subject"
            else:
                yield row, "it names no schema: it begins with no magic byte and id, and no header names one"


def _distinct(ids: I32) -> list[int]:
    """The ids that there are; mostly it is one."""
    if not len(ids) or (ids == ids[0]).all():
        return [int(one) for one in ids[:1]]
    return [int(one) for one in np.unique(ids)]


def _valid(array: pa.Array) -> Bools:
    found: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _same(writer: ValueSchema, columns: pa.Array, payloads: pa.Array) -> Bools:
    """Which columns give back exactly their payloads."""
    try:
        again = encoded(writer, columns)
    except EncodingError:
        return np.zeros(len(payloads), np.bool_)
    same: Bools = pc.equal(again, payloads).fill_null(False).to_numpy(zero_copy_only=False)
    return same


def _others(given: pa.DataType, kind: pa.DataType, path: str) -> Iterator[str]:
    """The paths of fields that a schema's type lacks, at all levels: Arrow's cast would drop those of inner structs."""
    if pa.types.is_struct(given) and pa.types.is_struct(kind):
        for field in given:
            at = kind.get_field_index(field.name)
            inner = f"{path}{field.name}"
            yield from [inner] if at < 0 else _others(field.type, kind.field(at).type, f"{inner}.")
    elif pa.types.is_map(given) and pa.types.is_map(kind):
        yield from _others(given.item_type, kind.item_type, f"{path}value.")
    elif hasattr(given, "value_type") and hasattr(kind, "value_type"):
        yield from _others(given.value_type, kind.value_type, f"{path}element.")


def _filled(columns: pa.Array, writer: ValueSchema) -> pa.Array:
    """Columns of a caller as the schema has them: what is missing has its default, or is null. May raise."""
    kind = writer.columns
    assert kind is not None
    if not pa.types.is_struct(columns.type):
        raise EncodingError(f"they are {columns.type}, not a struct")
    others = list(_others(columns.type, kind, ""))
    if others:
        raise EncodingError(f"they have fields that the schema does not: {', '.join(others)}")
    made = []
    for field in kind:
        at = columns.type.get_field_index(field.name)
        if at >= 0:
            made.append(columns.field(at).cast(field.type))
        else:
            made.append(pa.nulls(len(columns), field.type))
    mask = columns.is_null() if columns.null_count else None
    found = pa.StructArray.from_arrays(made, fields=list(kind), mask=mask)
    return with_lacking(found, columns.type, writer.defaults)
