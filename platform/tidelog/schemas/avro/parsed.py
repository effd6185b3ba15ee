"""An Avro schema, read: its canonical and normalised text, and whether it reads what an older one wrote."""

from collections.abc import Mapping
from functools import cached_property

from tidelog.schemas.avro.compare import compare
from tidelog.schemas.avro.model import AvroType
from tidelog.schemas.avro.reading import check_defaults, read
from tidelog.schemas.avro.writing import written
from tidelog.schemas.base.comparison import Differences, compared
from tidelog.schemas.base.json_text import too_deep
from tidelog.schemas.base.model import SchemaKind


class AvroSchema:
    """An Avro schema. `references`: {name: text} of all schemas that it needs, those that others need first."""

    kind = SchemaKind.AVRO

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        self.type, self._known = read(text, references.values())

    @cached_property
    def canonical(self) -> str:
        """The text as Avro's Java library writes it."""
        return written(self.type, self._known)

    @cached_property
    def normalized(self) -> str:
        """The canonical text with properties and aliases sorted."""
        return written(self.type, self._known, normalized=True)

    @cached_property
    def resolved(self) -> str:
        """The canonical text with the types of other schemas in it (`format=resolved`)."""
        try:
            return written(self.type)
        except RecursionError:  # references of references of references
            raise too_deep() from None

    @cached_property
    def whole(self) -> str:
        """The normalised text with the types of other schemas in it: the same for all texts of one type."""
        try:
            return written(self.type, normalized=True)
        except RecursionError:
            raise too_deep() from None

    @property
    def fields(self) -> frozenset[str]:
        """Names of the outermost record's fields."""
        return frozenset(one.name for one in self.type.fields)

    def check(self, *, strict: bool = False) -> None:  # noqa: ARG002 - Avro has no more rules for fields' names
        """Raise `SchemaError` where a default does not fit its type."""
        check_defaults(self.type)

    def differences_from(self, old: "AvroSchema", *, lenient: bool = False) -> Differences:
        """What keeps this schema from reading what `old` wrote."""
        return compared(compare, old.type, self.type, lenient=lenient)

    def root(self) -> AvroType:
        """The schema's type."""
        return self.type
