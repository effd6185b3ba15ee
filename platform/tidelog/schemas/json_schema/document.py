"""A JSON Schema's text as parts that can be compared: references resolved, keywords sorted by their types."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.json_text import Json, dumps, loads
from tidelog.schemas.json_schema.drafts import draft_of


class PartShape(Enum):
    """What a part of a schema is about. A schema with several of them is an allOf of them."""

    ANYTHING = auto()
    NOTHING = auto()
    STRING = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    NULL = auto()
    OBJECT = auto()
    ARRAY = auto()
    ENUM = auto()
    CONST = auto()
    NOT = auto()
    CONDITION = auto()
    COMBINED = auto()


# {the type that a schema names: the shape of its part}
TYPES: Final[Mapping[str, PartShape]] = {
    "string": PartShape.STRING,
    "number": PartShape.NUMBER,
    "integer": PartShape.NUMBER,
    "boolean": PartShape.BOOLEAN,
    "null": PartShape.NULL,
    "object": PartShape.OBJECT,
    "array": PartShape.ARRAY,
}
# Keywords that make a part of their own where no type does.
KEYWORDS: Final[Mapping[PartShape, frozenset[str]]] = {
    PartShape.ARRAY: frozenset(
        [
            "items",
            "additionalItems",
            "prefixItems",
            "minItems",
            "maxItems",
            "uniqueItems",
            "contains",
            "minContains",
            "maxContains",
            "unevaluatedItems",
        ]
    ),
    PartShape.OBJECT: frozenset(
        [
            "properties",
            "required",
            "minProperties",
            "maxProperties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "unevaluatedProperties",
        ]
    ),
    PartShape.NUMBER: frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    PartShape.STRING: frozenset(["minLength", "maxLength", "pattern", "format"]),
}
CRITERIA: Final = ("allOf", "anyOf", "oneOf")
_REFERENCES: Final = ("$ref", "$recursiveRef", "$dynamicRef")
# Keywords whose value is data, or a map from names to schemas.
_DATA: Final = frozenset({"enum", "const", "default", "examples"})
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"}
)


@dataclass(eq=False, slots=True)
class SchemaPart:
    """One part of a schema: of one shape, or several parts COMBINED.

    `of`: the schema that it was read from; `criterion` and `inner`: of a COMBINED part, how values must match its parts
    ("allOf", "anyOf", "oneOf"), and the parts' schemas.
    """

    shape: PartShape
    of: Mapping[str, Json]
    document: "Document"
    base: str
    criterion: str = ""
    inner: Sequence[Json] = ()
    integer: bool = False
    _parts: list["SchemaPart"] | None = field(default=None)

    def child(self, schema: Json) -> "SchemaPart":
        """A schema inside of this one, as a part."""
        return self.document.part(schema, self.base)

    def parts(self) -> list["SchemaPart"]:
        """The parts of a COMBINED one; those that are equal, once."""
        if self._parts is None:
            distinct = {
                dumps(schema, sort_keys=True): schema for schema in reversed(self.inner) if not _is_part(schema)
            }
            parts = [schema for schema in self.inner if isinstance(schema, SchemaPart)]
            self._parts = parts + [self.child(schema) for schema in reversed(distinct.values())]
        return self._parts


class Document:
    """One schema's JSON, and the schemas that it references.

    `references`: {name under which a schema is referenced: its text}, of all that are needed, inner ones too.
    """

    def __init__(self, root: Json, references: Mapping[str, str], base: str = "") -> None:
        self.root = root
        self._texts = references
        self._documents: dict[str, Document] = {}
        self._parts: dict[tuple[int, str], SchemaPart] = {}
        self._anything = SchemaPart(PartShape.ANYTHING, {}, self, base)
        self._nothing = SchemaPart(PartShape.NOTHING, {}, self, base)
        self.base = urljoin(base, _own_id(root))
        self._ids: dict[str, tuple[Json, str]] = {}
        for schema, own in self._schemas():
            identity = _own_id(schema)
            if identity:
                self._ids.setdefault(own.removesuffix("#"), (schema, own))
            for anchor in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(anchor), str):
                    self._ids.setdefault(f"{urldefrag(own)[0]}#{schema[anchor]}", (schema, own))

    @property
    def draft(self) -> int:
        """The year of the draft from 2019 on, else its number."""
        return draft_of(self.root).number

    def root_part(self) -> SchemaPart:
        """The whole schema."""
        return self.part(self.root, self.base)

    def part(self, schema: Json, base: str) -> SchemaPart:
        """A schema of this document, as a part. Raises `SchemaError` for a reference that leads nowhere."""
        if schema is True:
            return self._anything
        if schema is False:
            return self._nothing
        if not isinstance(schema, Mapping):
            raise SchemaError(f"Expected a JSON object or a boolean as a schema, found {schema!r}.")
        return self._resolved(schema, urljoin(base, _own_id(schema)))

    def check_references(self) -> None:
        """Raise `SchemaError` where a reference leads nowhere."""
        for schema, base in self._schemas():
            if any(isinstance(schema.get(key), str) for key in _REFERENCES):
                part = self.part(schema, base)
                if part.shape is PartShape.COMBINED:  # of a reference and what is beside it
                    part.parts()

    # --- references ----------------------------------------------------------------------------------------

    def _resolved(self, schema: Mapping[str, Json], base: str) -> SchemaPart:
        """The part at the end of a schema's references, which all schemas on the way are, too."""
        document, walked = self, dict[tuple[Document, int, str], None]()
        while True:
            part = document._parts.get((id(schema), base))
            if part is not None:
                break
            place = (document, id(schema), base)
            reference = next((schema[key] for key in _REFERENCES if isinstance(schema.get(key), str)), None)
            if place in walked:
                raise SchemaError(f"The reference '{reference}' leads back to itself. Let it name a schema.")
            walked[place] = None
            beside = {key: value for key, value in schema.items() if key not in _REFERENCES}
            if reference is None:
                part = document._taken_apart(schema, base)
                break
            if document.draft >= 2019 and _shapes(beside):
                part = SchemaPart(PartShape.COMBINED, schema, document, base, "allOf", ({"$ref": reference}, beside))
                break
            document, schema, base = document._target(reference, urljoin(base, reference))
            if not isinstance(schema, Mapping):
                part = document.part(schema, base)
                break
            base = urljoin(base, _own_id(schema))
        for document, identity, base in walked:
            part = document._parts.setdefault((identity, base), part)  # another thread may have been faster
        return part

    def _target(self, reference: str, uri: str) -> tuple["Document", Json, str]:
        if uri in self._ids:
            return self, *self._ids[uri]
        address, fragment = urldefrag(uri)
        if address == urldefrag(self.base)[0] or not urldefrag(reference)[0]:
            within = self._ids.get(address, (self.root, self.base))
            return self, *self._pointed(within, fragment, reference)
        if address in self._ids:
            return self, *self._pointed(self._ids[address], fragment, reference)
        document = self._other(urldefrag(reference)[0], address)
        if document is None:
            if "json-schema.org/draft" in address:
                return self, True, self.base
            raise _nowhere(reference, "no schema is referenced under that name")
        return document, *document._pointed((document.root, document.base), fragment, reference)

    def _other(self, name: str, address: str) -> "Document | None":
        for key in self._texts:
            if key in (name, address) or urljoin(self.base, key) == address:
                if key not in self._documents:
                    document = Document(loads(self._texts[key]), self._texts, address)
                    document._documents = self._documents
                    self._documents[key] = document
                return self._documents[key]
        return None

    def _pointed(self, place: tuple[Json, str], fragment: str, reference: str) -> tuple[Json, str]:
        at, base = place
        fragment = unquote(fragment)
        if not fragment:
            return at, base
        if not fragment.startswith("/"):
            anchored = self._ids.get(f"{urldefrag(base)[0]}#{fragment}")
            if anchored is None:
                raise _nowhere(reference, "the schema has no such anchor")
            return anchored
        for token in fragment[1:].split("/"):
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(at, Mapping) and key in at:
                at = at[key]
            elif isinstance(at, list) and key.isdecimal() and int(key) < len(at):
                at = at[int(key)]
            else:
                raise _nowhere(reference, f"nothing is at '{token}'")
            base = urljoin(base, _own_id(at))
        return at, base

    def _schemas(self) -> Iterator[tuple[Mapping[str, Json], str]]:
        """All schemas of the document, each with its base; without recursion."""
        stack: list[tuple[Json, str, bool]] = [(self.root, self.base, True)]
        while stack:
            value, base, is_schema = stack.pop()
            if isinstance(value, list):
                stack += [(one, base, is_schema) for one in value]
            elif isinstance(value, Mapping):
                if is_schema:
                    base = urljoin(base, _own_id(value))
                    yield value, base
                    stack += [(one, base, key not in _MAPS) for key, one in value.items() if key not in _DATA]
                else:
                    stack += [(one, base, True) for one in value.values()]

    # --- parts ---------------------------------------------------------------------------------------------

    def _taken_apart(self, schema: Mapping[str, Json], base: str) -> SchemaPart:
        parts = [
            SchemaPart(shape, schema, self, base, criterion, inner, integer)
            for shape, criterion, inner, integer in _shapes(schema)
        ]
        if not parts:
            return SchemaPart(PartShape.ANYTHING, schema, self, base)
        if len(parts) == 1:
            return parts[0]
        return SchemaPart(PartShape.COMBINED, schema, self, base, "allOf", parts)


def _shapes(schema: Mapping[str, Json]) -> list[tuple[PartShape, str, Sequence[Json], bool]]:
    shapes: list[tuple[PartShape, str, Sequence[Json], bool]] = []
    if "enum" in schema:
        shapes.append((PartShape.ENUM, "", (), False))
    shapes += [(PartShape.COMBINED, key, schema[key], False) for key in CRITERIA if isinstance(schema.get(key), list)]
    if "not" in schema:
        shapes.append((PartShape.NOT, "", (), False))
    if "const" in schema:
        shapes.append((PartShape.CONST, "", (), False))
    named = schema.get("type")
    taken: set[PartShape] = set()
    if isinstance(named, str):
        taken = {TYPES[named]}
        shapes.append((TYPES[named], "", (), named == "integer"))
    elif isinstance(named, list):
        taken = {TYPES[one] for one in named}
        about = {key: schema[key] for shape in taken for key in KEYWORDS.get(shape, ()) if key in schema}
        shapes.append((PartShape.COMBINED, "anyOf", [{"type": one, **about} for one in named], False))
    for shape, keywords in KEYWORDS.items():
        if shape not in taken and not keywords.isdisjoint(schema):
            shapes.append((shape, "", (), False))
    if "if" in schema:
        shapes.append((PartShape.CONDITION, "", (), False))
    return shapes


def _own_id(schema: Json) -> str:
    if not isinstance(schema, Mapping):
        return ""
    own = schema.get("$id", schema.get("id"))
    return own if isinstance(own, str) else ""


def _nowhere(reference: str, why: str) -> SchemaError:
    return SchemaError(
        f"The reference '{reference}' leads nowhere: {why}. Add the schema to the references, or correct the path."
    )


def _is_part(schema: object) -> bool:
    return isinstance(schema, SchemaPart)
