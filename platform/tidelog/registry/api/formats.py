"""The forms in which a schema's text may be asked for (`format`)."""

from tidelog.registry.state.fold import RegistryState
from tidelog.registry.state.reading import resolved
from tidelog.schemas.avro.parsed import AvroSchema
from tidelog.schemas.base.model import Schema
from tidelog.schemas.compatibility import parse
from tidelog.schemas.protobuf.parsed import ProtobufSchema


def formatted(state: RegistryState, subject: str, schema: Schema, form: str) -> str:
    """A schema's text: `resolved` (Avro, references written out), `serialized` (Protobuf, base64), else as stored."""
    if form.lower() not in ("resolved", "serialized"):
        return schema.text
    parsed = parse(schema.kind, schema.text, resolved(state, subject, schema))
    if form.lower() == "resolved" and isinstance(parsed, AvroSchema):
        return parsed.resolved
    if form.lower() == "serialized" and isinstance(parsed, ProtobufSchema):
        return parsed.serialized
    return schema.text
