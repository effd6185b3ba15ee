"""A JSON Schema, read: its canonical and normalised text, and whether it reads what an older one wrote."""

from collections.abc import Mapping
from functools import cached_property, partial

from tidelog.schemas.base.comparison import Differences, compared
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.base.json_text import Json, dumps, loads
from tidelog.schemas.base.model import SchemaKind
from tidelog.schemas.json_schema.compare import compare
from tidelog.schemas.json_schema.document import Document
from tidelog.schemas.json_schema.drafts import draft_of


class JsonSchema:
    """A JSON Schema. `references`: {name: text} of all schemas that it needs."""

    kind = SchemaKind.JSON

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        self._root = loads(text)
        self._references = references
        self._checked = False

    @cached_property
    def canonical(self) -> str:
        """The text in one line, keys as they were sent."""
        return dumps(self._root)

    @cached_property
    def normalized(self) -> str:
        """The text in one line, keys sorted."""
        return dumps(self._root, sort_keys=True)

    @cached_property
    def document(self) -> Document:
        """The schema's parts."""
        return Document(self._root, self._references)

    @property
    def fields(self) -> frozenset[str]:
        """Names of the outermost object's properties."""
        properties = self._root.get("properties") if isinstance(self._root, Mapping) else None
        return frozenset(properties) if isinstance(properties, Mapping) else frozenset()

    def check(self, *, strict: bool = False) -> None:
        """Raise `SchemaError` for what is no JSON Schema, or references what isn't there.

        `strict`: also for names of properties that begin with $$, which are Confluent's own.
        """
        reserved = sorted(name for name in self.fields if name.startswith("$$")) if strict else ()
        if reserved:
            raise SchemaError(f"Names can't begin with $$, as that of '#/properties/{reserved[0]}' does.")
        if self._checked:
            return
        if not isinstance(self._root, Mapping | bool):
            found = type(self._root).__name__
            raise SchemaError(f"A JSON Schema must be a JSON object or a boolean, found {found}.")
        draft = draft_of(self._root)
        error = next(iter(draft.validator({"$ref": draft.meta}).iter_errors(self._root)), None)
        if error is not None:
            place = "/".join(str(step) for step in ("#", *error.instance_path))
            raise SchemaError(
                f"The schema breaks JSON Schema's rules (draft {draft.number}) at '{place}': {error.message}"
            )
        self.document.check_references()
        self._checked = True

    def differences_from(self, old: "JsonSchema", *, lenient: bool = False) -> Differences:
        """What changed since `old`, by the rules of `tidelog.schemas.json_schema.rules`."""
        old.check()
        rules = partial(compare, lenient=lenient)
        return compared(rules, old.document.root_part(), self.document.root_part(), lenient=lenient)

    def root(self) -> Json:
        """The schema's JSON."""
        return self._root
