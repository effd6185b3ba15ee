"""Avro schemas, compiled: payloads to columns and back."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from tidelog.schemas.avro.columns import columns_of, default_values
from tidelog.schemas.avro.decoder import decode
from tidelog.schemas.avro.encoder import encode
from tidelog.schemas.avro.payload_reader import BadPayloadError, payload_reader
from tidelog.schemas.avro.reading import read
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.base.value_schemas import Decoded, FieldPath

_KEPT_SCHEMAS: Final = 1000


class AvroValues:
    """An Avro schema, compiled: a `ValueSchema`. Raises `SchemaError` for a text that is none."""

    kind = "avro"
    lenient = False

    def __init__(self, text: str, references: tuple[tuple[str, str], ...] = ()) -> None:
        self._text, self._references = text, references
        root, _ = read(text, [other for _, other in references], strict=False)
        self._column, left_out = columns_of(root)
        self._read = payload_reader(self._column)
        self.left_out: Mapping[str, str] = left_out
        self.columns: pa.StructType | None = self._column.type
        self.exact = self.columns is not None and not self.left_out
        self.defaults: Mapping[FieldPath, Any] = {} if self.columns is None else default_values(self._column)

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_avro, (self._text, self._references)

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        """The columns of payloads; null rows where a payload is null or does not fit the schema."""
        return decode(self._column, self._read, payloads)

    def encode(self, columns: pa.StructArray) -> pa.BinaryArray:
        """The payloads of rows, null for null rows. Raises `EncodingError`, naming the first row that can't be one."""
        if self.columns is None:
            raise EncodingError("The schema has no columns, so that no payload can be made of them.")
        return encode(self._column, columns)

    def problem(self, payload: bytes) -> str | None:
        """Why a payload does not fit the schema, None where it does."""
        try:
            self._read(payload)
        except BadPayloadError as error:
            return f"The payload does not fit its schema: {error}."
        return None


@lru_cache(maxsize=_KEPT_SCHEMAS)
def compile_avro(text: str, references: tuple[tuple[str, str], ...] = ()) -> AvroValues:
    """An Avro schema by its text, compiled once. Raises `SchemaError`."""
    return AvroValues(text, references)
