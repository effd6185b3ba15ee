"""JSON's serializer and deserializer, in the shape of `confluent_kafka.schema_registry.json_schema`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonschema_rs
import orjson

from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import Deserializer, SerializationContext, Serializer
from tidelog.schema_registry.client import SchemaRegistryClient
from tidelog.schema_registry.framing import unframed
from tidelog.schema_registry.model import RegisteredSchema, Schema
from tidelog.schema_registry.serdes import DEFAULTS, SchemaChooser, configured, referenced, schema_of

_SERIALIZER: Final = {**DEFAULTS, "validate": True}
_DESERIALIZER: Final = {"validate": True}


class JSONSerializer(Serializer):
    """Objects as JSON that fits a schema, behind the schema's id.

    `schema_str`: a schema as JSON text, or a `Schema` with its references; None with `use.latest.version` or
    `use.schema.id`. `to_dict`: makes of (object, context) what JSON takes. `conf`: as AvroSerializer's, and `validate`.
    `json_encode`: makes text or bytes of a value.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: SchemaRegistryClient,
        to_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        json_encode: Callable[[Any], str | bytes] = orjson.dumps,
    ) -> None:
        settings = configured(conf, _SERIALIZER)
        self._client = schema_registry_client
        self._to_dict = to_dict
        self._encode = json_encode
        self._validate = settings["validate"]
        self._chooser = SchemaChooser(schema_registry_client, settings)
        self._schema = Schema(schema_str, "JSON") if isinstance(schema_str, str) else schema_str
        self._by_subject: dict[str, tuple[RegisteredSchema, jsonschema_rs.Validator]] = {}
        self._name = None if self._schema is None else _title(self._schema)

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """An object's bytes; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if obj is None:
            return None
        subject = self._chooser.subject(ctx, self._name)
        known = self._by_subject.get(subject)
        if known is None:
            chosen = self._chooser.version(subject, self._schema)
            known = self._by_subject[subject] = chosen, validator_of(self._client, chosen.schema)
        version, validator = known
        value = obj if self._to_dict is None else self._to_dict(obj, ctx)
        if self._validate:
            check(validator, value)
        try:
            payload = self._encode(value)
        except (TypeError, ValueError) as error:
            raise SerializationError(f"The value can't be written as JSON: {error}") from error
        return self._chooser.framing(payload.encode() if isinstance(payload, str) else payload, ctx, version)


class JSONDeserializer(Deserializer):
    """Objects from JSON. `schema_str`: what values must fit; None: the schema that they name.

    `from_dict`: makes of (value, context) an object. `conf`: `validate`. `json_decode`: makes a value of bytes.
    """

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext | None], Any] | None = None,
        schema_registry_client: SchemaRegistryClient | None = None,
        conf: Mapping[str, Any] | None = None,
        json_decode: Callable[[bytes], Any] = orjson.loads,
    ) -> None:
        if schema_str is None and schema_registry_client is None:
            raise ValueError("The deserializer needs a schema, or a client that knows the schemas that values name.")
        self._client = schema_registry_client
        self._from_dict = from_dict
        self._decode = json_decode
        self._validate = configured(conf, _DESERIALIZER)["validate"]
        schema = Schema(schema_str, "JSON") if isinstance(schema_str, str) else schema_str
        self._reader = None if schema is None else validator_of(schema_registry_client, schema)
        self._writers: dict[int | str, jsonschema_rs.Validator] = {}

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """The object that bytes stand for; None stays None. Raises `SerializationError`, `SchemaRegistryError`."""
        if value is None:
            return None
        named, payload = unframed(value, ctx)
        try:
            found = self._decode(payload)
        except ValueError as error:
            raise SerializationError(f"The message is no JSON: {error}") from error
        if self._validate:
            check(self._reader or self._writer(named), found)
        return found if self._from_dict is None else self._from_dict(found, ctx)

    def _writer(self, named: int | str) -> jsonschema_rs.Validator:
        found = self._writers.get(named)
        if found is None:
            assert self._client is not None  # there is a reader without one
            found = self._writers[named] = validator_of(self._client, schema_of(self._client, named))
        return found


def check(validator: jsonschema_rs.Validator, value: Any) -> None:
    """Raise `SerializationError` where a value does not fit a schema, with the place."""
    if validator.is_valid(value):
        return
    error = next(iter(validator.iter_errors(value)))
    place = "/".join(str(step) for step in ("#", *error.instance_path))
    raise SerializationError(f"The value does not fit its schema at '{place}': {error.message}")


def validator_of(client: SchemaRegistryClient | None, schema: Schema) -> jsonschema_rs.Validator:
    """What tests values by a schema and those that it references; no other ones are looked for.

    Raises `SerializationError` for what is no JSON Schema.
    """
    if schema.schema_type != "JSON":
        raise SerializationError(f"The schema is of type {schema.schema_type}, not JSON: take its own deserializer.")
    texts = referenced(client, schema.references) if client is not None else {}

    def found(uri: str) -> Any:
        for name, text in texts.items():
            if uri == name or uri.endswith(f"/{name}"):
                return orjson.loads(text)
        raise KeyError(f"no schema is referenced under {uri}")

    try:
        return jsonschema_rs.validator_for(orjson.loads(schema.schema_str or ""), retriever=found)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SerializationError(f"The schema is no JSON Schema: {error}") from error


def _title(schema: Schema) -> str | None:
    try:
        root = orjson.loads(schema.schema_str or "")
    except ValueError as error:
        raise SerializationError(f"The schema is no JSON: {error}") from error
    return root.get("title") if isinstance(root, dict) else None
