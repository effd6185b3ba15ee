"""What a configuration key is: its name, its type with Kafka's checks, its default and its meaning.

A kind turns a key's text into a value and back. It words what is wrong with a text as Kafka's `ConfigDef` does.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, overload

from tidelog.log.base.errors import InvalidConfigError

T = TypeVar("T")

MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Kind(Protocol[T]):
    """A type of values and the texts that stand for them."""

    @property
    def allowed(self) -> str:
        """What a text may be, as the end of the sentence "Give …"."""

    def parse(self, text: str) -> T:
        """Return the value of a trimmed text; raise ValueError with Kafka's reason when it has none."""

    def text(self, value: T) -> str:
        """Return the canonical text of a value."""


@dataclass(frozen=True)
class Integer:
    """A whole number of 32 (`INT`) or 64 bits (`LONG`) in `low`..`high`, or one of `besides`."""

    bits: int
    low: int | None = None
    high: int | None = None
    besides: int | None = None

    @property
    def allowed(self) -> str:
        """The range in words."""
        kind = f"a whole number of {self.bits} bits"
        if self.low is not None and self.high is not None:
            kind = f"a whole number from {self.low} to {self.high}"
        elif self.low is not None:
            kind = f"a whole number of at least {self.low}"
        return kind if self.besides is None else f"{kind}, or {self.besides}"

    def parse(self, text: str) -> int:
        """Check as `ConfigDef.Range` does."""
        value = int(text) if _INTEGER.fullmatch(text) else None
        limit = 1 << (self.bits - 1)
        if value is None or not -limit <= value < limit:
            raise ValueError(f"Not a number of type {'INT' if self.bits == 32 else 'LONG'}")
        low = value if self.low is None else self.low
        high = value if self.high is None else self.high
        if self.besides is not None:
            if value != self.besides and not low <= value <= high:
                raise ValueError(f"Value must be between {low} and {high} or equal to {self.besides}")
        elif value < low:
            raise ValueError(f"Value must be at least {low}")
        elif value > high:
            raise ValueError(f"Value must be no more than {high}")
        return value

    def text(self, value: int) -> str:
        """Write decimal digits."""
        return str(value)


def int_of(low: int | None = None, high: int | None = None, *, besides: int | None = None) -> Integer:
    """Return Kafka's type INT in a range."""
    return Integer(32, low, high, besides)


def long_of(low: int | None = None, high: int | None = None) -> Integer:
    """Return Kafka's type LONG in a range."""
    return Integer(64, low, high)


@dataclass(frozen=True)
class Decimal:
    """A number with a fraction (`DOUBLE`) in `low`..`high`."""

    low: int
    high: int

    @property
    def allowed(self) -> str:
        """The range in words."""
        return f"a number from {self.low} to {self.high}"

    def parse(self, text: str) -> float:
        """Check as `ConfigDef.Range` does; unlike it, NaN is no number."""
        value = float(text) if _DECIMAL.fullmatch(text) else math.nan
        if math.isnan(value):
            raise ValueError("Not a number of type DOUBLE")
        if value < self.low:
            raise ValueError(f"Value must be at least {self.low}")
        if value > self.high:
            raise ValueError(f"Value must be no more than {self.high}")
        return value

    def text(self, value: float) -> str:
        """Write the shortest digits that give the same number."""
        return repr(value)


@dataclass(frozen=True)
class Boolean:
    """True or false, in any case."""

    allowed: str = "true or false"

    def parse(self, text: str) -> bool:
        """Check as Kafka's type BOOLEAN does."""
        if text.lower() not in ("true", "false"):
            raise ValueError("Expected value to be either true or false")
        return text.lower() == "true"

    def text(self, value: bool) -> str:
        """Write it in lower case."""
        return "true" if value else "false"


@dataclass(frozen=True)
class Choice(Generic[T]):
    """One of a few names, each standing for a value; case matters, as in Kafka."""

    options: Mapping[str, T]

    @property
    def allowed(self) -> str:
        """The names."""
        return f"one of {', '.join(self.options)}"

    def parse(self, text: str) -> T:
        """Check as `ConfigDef.ValidString` does."""
        if text not in self.options:
            raise ValueError(f"String must be one of: {', '.join(self.options)}")
        return self.options[text]

    def text(self, value: T) -> str:
        """Write the value's name."""
        return next(name for name, option in self.options.items() if option == value)


@dataclass(frozen=True)
class Words:
    """A set of names, written as a list with commas; case matters, as in Kafka."""

    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        """The names."""
        return f"one or more of {', '.join(self.options)}, with commas between them"

    def parse(self, text: str) -> frozenset[str]:
        """Check as `ConfigDef.ValidList` does: no name twice; an empty text is an empty list."""
        words = [word.strip() for word in text.split(",")] if text else []
        for word in words:
            if word not in self.options:
                raise ValueError(f"String must be one of: {', '.join(self.options)}")
        if len(set(words)) != len(words):
            raise ValueError("Values must not be duplicated")
        return frozenset(words)

    def text(self, value: frozenset[str]) -> str:
        """Write the names in the order of the options."""
        return ",".join(option for option in self.options if option in value)


class Values(Protocol):
    """What a key reads its value from."""

    def get(self, name: str, default: Any) -> Any:
        """Return the value that is set under a key's name, or `default`."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """A configuration key. As a class attribute it reads as its value: `config.retention_ms` is an int.

    `lake_name`: under what name a lake holds the default of a topic's key (Kafka's `ServerTopicConfigSynonyms`).
    """

    name: str
    default: T
    kind: Kind[T]
    doc: str
    lake_name: str = ""

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
        except ValueError as error:
            raise InvalidConfigError(
                f"Invalid value {text.strip()} for configuration {self.name}: {error}. Give {self.kind.allowed}; "
                f"the default is {self.kind.text(self.default)}."
            ) from None
