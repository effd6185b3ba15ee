"""What a configuration key is: its name, its kind of values, its default and its meaning.

What is wrong with a text is worded as Kafka's `ConfigDef` does.
"""

from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, overload

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import (
    MAX_INT,
    Dialect,
    Flag,
    NameList,
    Number,
    Problem,
    TextKind,
    Texts,
    ValueKind,
    Whole,
    reason,
)
from tidelog.log.storage.addresses import why_wrong

T = TypeVar("T")

KAFKA: Final[Dialect] = {
    Problem.NO_WHOLE_NUMBER: "Not a number of type {type}",
    Problem.NO_NUMBER: "Not a number of type DOUBLE",
    Problem.TOO_LOW: "Value must be at least {low}",
    Problem.TOO_HIGH: "Value must be no more than {high}",
    Problem.NEITHER_IN_RANGE_NOR_BESIDES: "Value must be between {low} and {high} or equal to {besides}",
    Problem.NO_FLAG: "Expected value to be either true or false",
    Problem.NO_NAME: "String must be one of: {names}",
    Problem.REPEATED_NAME: "Values must not be duplicated",
}


def int_of(low: int | None = None, high: int | None = None, *, besides: int | None = None) -> Whole:
    """Return Kafka's type INT in a range."""
    return Whole(low, high, 32, besides)


def long_of(low: int | None = None, high: int | None = None) -> Whole:
    """Return Kafka's type LONG in a range."""
    return Whole(low, high, 64)


def kafka_type(kind: ValueKind[Any]) -> str:
    """The name of Kafka's type of a kind's values (`ConfigDef.Type`): STRING for those that have none of their own."""
    if isinstance(kind, Whole):
        bits = kind.bits or (32 if (kind.high or 0) <= MAX_INT else 64)
        return {16: "SHORT", 32: "INT"}.get(bits, "LONG")
    types = ((Flag, "BOOLEAN"), (Number, "DOUBLE"), (NameList, "LIST"), (Texts, "LIST"))
    return next((name for of, name in types if isinstance(kind, of)), "STRING")


class RootAddress:
    """The address of a root beside the lake, by which every process finds it; empty for the lake itself."""

    allowed = "the whole address of a folder or of a place in an object store, or nothing for the lake itself"

    def parse(self, value: Any) -> str:
        """Take an address that does not depend on a process's folder."""
        address = str(value)
        if not address:
            return ""
        why = why_wrong(address)
        if why is None and not address.startswith("/") and ":" not in address:
            why = f"{address!r} depends on the folder that a process runs in"
        if why is not None:
            raise ValueError(why.rstrip("."))
        return address.rstrip("/")

    def text(self, value: str) -> str:
        """Write the address."""
        return value


class Values(Protocol):
    """What a key reads its value from."""

    def get(self, name: str, default: Any) -> Any:
        """Return the value that is set under a key's name, or `default`."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """A configuration key. As a class attribute it reads as its value: `config.retention_ms` is an int.

    `lake_name`: under what name a lake holds the default of a topic's key (Kafka's `ServerTopicConfigSynonyms`); the
    key's own unless given. `inherits`: whether a lake may hold a default at all. `name`: the attribute's unless given,
    with dots: `retention.ms`.
    """

    default: T
    kind: TextKind[T]
    doc: str
    lake_name: str = ""
    name: str = ""
    inherits: bool = True

    def __set_name__(self, owner: type, attribute: str) -> None:
        object.__setattr__(self, "name", self.name or attribute.replace("_", "."))
        object.__setattr__(self, "lake_name", self.lake_name or self.name)

    @overload
    def __get__(self, instance: None, owner: type) -> "Key[T]": ...

    @overload
    def __get__(self, instance: Values, owner: type) -> T: ...

    def __get__(self, instance: Values | None, owner: type) -> "Key[T] | T":
        """Return the key itself from the class, and its value from an instance."""
        if instance is None:
            return self
        value: T = instance.get(self.name, self.default)
        return value

    def parse(self, text: str) -> T:
        """Return the value of `text`, trimmed; raise InvalidConfigError in Kafka's words when it has none."""
        if not isinstance(text, str):
            raise InvalidConfigError(
                f"Invalid value {text!r} for configuration {self.name}: values are strings, as in Kafka, not "
                f"{type(text).__name__}. Write it in quotes."
            )
        try:
            return self.kind.parse(text.strip())
        except ValueError as e:
            raise InvalidConfigError(
                f"Invalid value {text.strip()} for configuration {self.name}: {reason(e, KAFKA)}. Give"
                f" {self.kind.allowed}; the default is {self.kind.text(self.default) or 'nothing'}."
            ) from None
