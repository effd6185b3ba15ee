"""Which columns a JSON Schema has: the Arrow type of each property, and why one is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import jsonschema_rs
import orjson
import pyarrow as pa

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.json_text import Json
from tidelog.schemas.base.value_schemas import name_problem
from tidelog.schemas.json_schema.drafts import draft_of

MAX_COLUMNS: Final = 10_000
MAX_DEPTH: Final = 50
_ROOT: Final = "json-schema:///schema.json"
_SCALARS: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
# What a value is by the type of Python that reads it: enumerations without a type.
_KINDS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# Keywords that say nothing about which values fit.
_ANNOTATIONS: Final = frozenset({
    "$ref", "$id", "id", "$schema", "$comment", "$anchor", "$defs", "definitions", "title", "description", "default",
    "examples", "deprecated", "readOnly", "writeOnly",
})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class JsonColumn:
    """A type at one place of a schema. `type`: its column's, None for what is left out.

    `nullable`: whether null fits. `inner`: an array's items, a map's values. `fields`: an object's properties that are
    columns. `required`: the names of properties that each object has, columns or not. `defaults`: of properties that
    are columns, as written.
    """

    type: pa.DataType | None
    nullable: bool = False
    inner: "JsonColumn | None" = None
    fields: "tuple[tuple[str, JsonColumn], ...]" = ()
    required: frozenset[str] = frozenset()
    defaults: Mapping[str, Json] = field(default_factory=dict)


class JsonDocument:
    """A schema's JSON and the schemas that it references. Raises `SchemaError`. Nothing is looked for elsewhere.

    `references`: (name under which a schema is referenced, its text).
    """

    def __init__(self, text: str, references: tuple[tuple[str, str], ...]) -> None:
        self._others = {name: _loads(other, f"The schema '{name}'") for name, other in reversed(references)}
        self.root = _loads(text, "The schema")
        try:
            _key(self.root, self._others)
        except TypeError as error:
            raise SchemaError(f"The schema can't be read: {error}. Move inner types to its definitions.") from error
        self._draft = draft_of(self.root)

    def validator(self) -> jsonschema_rs.Validator:
        """What tests values; patterns are matched in linear time. Raises `SchemaError` for what is no JSON Schema."""
        options = jsonschema_rs.RegexOptions()
        try:
            return self._draft.validator(self.root, retriever=self._found, pattern_options=options)
        except jsonschema_rs.ValidationError as error:
            place = "/".join(["#", *map(str, error.instance_path)])
            raise SchemaError(f"The schema is no JSON Schema: '{place}': {error.message}.") from error
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise SchemaError(f"The schema is no JSON Schema: {error}") from error

    def resolver(self) -> jsonschema_rs.Resolver:
        """What finds the schemas that references name."""
        identity = self.root.get("$id", self.root.get("id")) if isinstance(self.root, dict) else None
        base = identity if isinstance(identity, str) and ":" in identity else _ROOT
        try:
            return jsonschema_rs.Registry(
                [(base, self.root if isinstance(self.root, dict) else {})],
                draft=self._draft.dialect,
                retriever=self._found,
            ).resolver(base)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise SchemaError(f"The schema's references can't be followed: {error}") from error

    @property
    def refs_stand_alone(self) -> bool:
        """Whether what is beside a `$ref` counts for nothing: up to draft 7."""
        return self._draft.number < 2019

    def as_written(self, schema: Json) -> Json:
        """A schema that the resolver found, with its names in their order."""
        return self._written.get(_key(schema), schema)

    @cached_property
    def _written(self) -> dict[bytes, Json]:
        """Each object of the schema and its references, by its text with sorted names."""
        objects = {}
        stack = [self.root, *self._others.values()]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                objects[_key(node)] = node
            if isinstance(node, dict | list):
                stack += node.values() if isinstance(node, dict) else node
        return objects

    def _found(self, uri: str) -> Json:
        for name, schema in self._others.items():
            if uri == name or uri.endswith(f"/{name}"):
                return schema
        raise KeyError(f"no schema is referenced under {uri}")


def _key(*values: Json) -> bytes:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)


def _loads(text: str, what: str) -> Json:
    try:
        return orjson.loads(text)
    except ValueError as error:
        raise SchemaError(f"{what} is no JSON: {error}.") from error


def columns_of(document: JsonDocument) -> tuple[JsonColumn, dict[str, str]]:
    """A schema's columns, and the path of each property that is left out -> why."""
    planner = _JsonPlanner(document)
    column = planner.column(document.root, document.resolver(), "", ())
    if column.type is not None and not pa.types.is_struct(column.type):
        planner.left_out[""] = "it is no object with properties"
        column = JsonColumn(None)
    return column, planner.left_out


class _JsonPlanner:
    def __init__(self, document: JsonDocument) -> None:
        self.left_out: dict[str, str] = {}
        self._document = document
        self._count = 0

    def _no(self, path: str, why: str) -> JsonColumn:
        self.left_out[path] = why
        return JsonColumn(None)

    def column(self, schema: Json, resolver: Any, path: str, around: tuple[bytes, ...]) -> JsonColumn:
        self._count += 1
        if self._count > MAX_COLUMNS:
            return self._no(path, f"the schema has more than {MAX_COLUMNS} properties")
        if len(around) > MAX_DEPTH:
            return self._no(path, f"it is nested deeper than {MAX_DEPTH} levels")
        if not isinstance(schema, dict):
            return self._no(path, "it may be anything" if schema is True else "no value fits it")
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referenced(schema, reference, resolver, path, around)
        key = _key(resolver.base_uri, schema)
        if key in around:
            return self._no(path, "its type holds itself")
        if "$id" in schema and around:
            resolver = self._within(schema["$id"], resolver)
        return self._plain(schema, resolver, path, (*around, key))

    def _within(self, identity: Json, resolver: Any) -> Any:
        try:
            return resolver.lookup(identity).resolver if isinstance(identity, str) else resolver
        except (ValueError, jsonschema_rs.ReferencingError):
            return resolver

    def _referenced(
        self, schema: Mapping[str, Json], reference: str, resolver: Any, path: str, around: tuple[bytes, ...]
    ) -> JsonColumn:
        beside = schema.keys() - _ANNOTATIONS
        if beside and not self._document.refs_stand_alone:
            return self._no(path, f"its $ref has other keywords beside it ({', '.join(sorted(beside))})")
        key = _key(resolver.base_uri, reference)
        if key in around:
            return self._no(path, "its type holds itself")
        try:
            target = resolver.lookup(reference)
        except (ValueError, jsonschema_rs.ReferencingError):
            return self._no(path, f"its reference '{reference}' leads nowhere")
        return self.column(self._document.as_written(target.contents), target.resolver, path, (*around, key))

    def _plain(self, schema: Mapping[str, Json], resolver: Any, path: str, around: tuple[bytes, ...]) -> JsonColumn:
        for word in ("oneOf", "anyOf", "allOf"):
            if isinstance(schema.get(word), list):
                return self._alternatives(word, schema, resolver, path, around)
        named, nullable = _types(schema)
        if len(named) != 1:
            return self._no(path, "it may be of several types" if named else "no type is said")
        kind = named.pop()
        if kind in _SCALARS:
            return JsonColumn(_SCALARS[kind], nullable)
        if kind == "array":
            return self._array(schema, resolver, path, around, nullable)
        if kind == "object":
            return self._object(schema, resolver, path, around, nullable)
        return self._no(path, "null is no type of a column")

    def _alternatives(
        self, word: str, schema: Mapping[str, Json], resolver: Any, path: str, around: tuple[bytes, ...]
    ) -> JsonColumn:
        inner = schema[word]
        values = [one for one in inner if not (word != "allOf" and _is_null(one))]
        if len(values) != 1 or schema.keys() & {"properties", "items", "additionalProperties"}:
            why = "it must fit several schemas" if word == "allOf" else "it may be of several types"
            return self._no(path, f"{why} ({word})")
        one = self.column(values[0], resolver, path, around)
        return replace(one, nullable=one.nullable or len(values) < len(inner))

    def _array(
        self, schema: Mapping[str, Json], resolver: Any, path: str, around: tuple[bytes, ...], nullable: bool
    ) -> JsonColumn:
        items = schema.get("items")
        if isinstance(items, list) or "prefixItems" in schema:
            return self._no(path, "its items have types by their places")
        if items is None:
            return self._no(path, "its items may be anything")
        inner = self.column(items, resolver, f"{path}.element", around)
        if inner.type is None:
            return self._no(path, f"what it holds is left out: {self.left_out[f'{path}.element']}")
        return JsonColumn(pa.list_(pa.field("element", inner.type)), nullable, inner)

    def _object(
        self, schema: Mapping[str, Json], resolver: Any, path: str, around: tuple[bytes, ...], nullable: bool
    ) -> JsonColumn:
        properties = schema.get("properties")
        if not properties or not isinstance(properties, dict):
            return self._map(schema, resolver, path, around, nullable)
        names: dict[str, str] = {}
        fields, defaults = [], {}
        for name, inner in properties.items():
            here = f"{path}.{name}" if path else name
            problem = name_problem(name, names)
            column = self.column(inner, resolver, here, around) if problem is None else self._no(here, problem)
            if column.type is not None:
                names[name.lower()] = name
                fields.append((name, column))
                if isinstance(inner, dict) and "default" in inner:
                    defaults[name] = inner["default"]
        if not fields:
            return self._no(path, "no property of it can be a column")
        required = schema.get("required")
        kind = pa.struct([pa.field(name, column.type) for name, column in fields])
        needed = frozenset(required if isinstance(required, list) else ())
        return JsonColumn(kind, nullable, None, tuple(fields), needed, defaults)

    def _map(
        self, schema: Mapping[str, Json], resolver: Any, path: str, around: tuple[bytes, ...], nullable: bool
    ) -> JsonColumn:
        values = schema.get("additionalProperties")
        if not isinstance(values, dict) or not values:
            return self._no(path, "it has no properties, nor one type for all")
        if "patternProperties" in schema:
            return self._no(path, "its properties have types by their names' patterns")
        inner = self.column(values, resolver, f"{path}.value", around)
        if inner.type is None:
            return self._no(path, f"what it holds is left out: {self.left_out[f'{path}.value']}")
        return JsonColumn(pa.map_(pa.string(), inner.type), nullable, inner)


def _types(schema: Mapping[str, Json]) -> tuple[set[str], bool]:
    """The types but null that a schema allows, and whether it allows null."""
    said = schema.get("type")
    if isinstance(said, str):
        named = {said}
    elif isinstance(said, list):
        named = {str(one) for one in said}
    elif "enum" in schema or "const" in schema:
        values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        named = {_KINDS.get(type(one), "object") for one in values}
        if named >= {"integer", "number"}:
            named -= {"integer"}
    else:
        named = {"object"} if "properties" in schema else {"array"} if "items" in schema else set()
    return named - {"null"} or named, "null" in named


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None])
