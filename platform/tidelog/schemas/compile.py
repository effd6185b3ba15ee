"""Which codec reads a schema; each keeps what it has compiled."""

from tidelog.log.base.extras import require
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.value_schemas import ValueSchema


def compile_schema(
    kind: str, text: str, references: tuple[tuple[str, str], ...] = (), bare: bool = False
) -> ValueSchema:
    """The schema of a kind ("avro", "json", "protobuf") and its text.

    `references`: (name, text) of the schemas that it needs, those that others need first. `bare`: payloads of
    Protobuf are messages without Confluent's message indexes before them, as under an inline schema. Raises
    `SchemaError`, and `MissingPackageError` where the kind needs packages that are not installed.
    """
    if kind == "avro":
        from tidelog.schemas.avro.values import compile_avro

        return compile_avro(text, references)
    if kind == "json":
        require("typed", "jsonschema_rs", "msgspec")
        from tidelog.schemas.json_schema.values import compile_json

        return compile_json(text, references)
    if kind == "protobuf":
        require("typed", "google.protobuf", "proto_schema_parser", "protoxy", "ptars")
        from tidelog.schemas.protobuf.values import compile_protobuf

        return compile_protobuf(text, references, bare)
    raise SchemaError(f"'{kind}' is no kind of schema: take avro, json or protobuf.")
