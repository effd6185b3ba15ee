"""Schemas that are named in a header: Confluent's `__value_schema_id`, a magic byte 1 and the schema's guid."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

HEADER: Final = "__value_schema_id"
_MAGIC: Final = 1
_BYTES: Final = 17


def guids_of(headers: pa.Array) -> dict[int, bytes]:
    """{row: guid (16 bytes)} of the records whose headers name one; the last such header of a record counts."""
    if headers.null_count == len(headers):
        return {}
    flat = headers.flatten()
    named = pc.equal(pc.struct_field(flat, "key"), HEADER)
    if not pc.any(named).as_py():
        return {}
    rows = pc.list_parent_indices(headers).filter(named).to_pylist()
    given = pc.struct_field(flat, "value").filter(named).to_pylist()
    found = dict(zip(rows, given, strict=True))
    return {row: one[1:] for row, one in found.items() if one and len(one) == _BYTES and one[0] == _MAGIC}
