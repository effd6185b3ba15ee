"""Kinds of values that configuration keys and options take, and how each dialect words a value that is wrong.

A kind turns what a caller gives into a value and back into its canonical text. A value that is wrong is a
`WrongValueError` with one of the `Problem`s. A `Dialect` words problems as the system does whose keys these are: Kafka,
librdkafka, Java, an object store.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum, auto
from typing import Any, Final, Generic, Protocol, TypeVar
from unicodedata import category

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1
TRUE_FALSE: Final = {"true": True, "false": False}

# More digits than any range has; longer texts would only cost time.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,99}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][+-]?[0-9]{1,3})?")


class Problem(Enum):
    """What is wrong with a value."""

    NO_WHOLE_NUMBER = auto()
    NO_NUMBER = auto()
    TOO_LOW = auto()
    TOO_HIGH = auto()
    NEITHER_IN_RANGE_NOR_BESIDES = auto()
    NO_FLAG = auto()
    NO_NAME = auto()
    REPEATED_NAME = auto()


Dialect = Mapping[Problem, str]


class WrongValueError(ValueError):
    """A value that its kind does not take. `facts`: what a dialect's sentence may name."""

    def __init__(self, problem: Problem, kind: "ValueKind[Any]", **facts: Any) -> None:
        super().__init__(f"give {kind.allowed}")
        self.problem = problem
        self.facts = facts

    def said(self, dialect: Dialect) -> str:
        """The reason in a dialect's words; what it has no words for is said in general ones."""
        return dialect[self.problem].format_map(self.facts) if self.problem in dialect else str(self)


class UnfitValueError(ValueError):
    """A value of its kind that a rule does not take. `value`: as it was parsed, or the part of it that is wrong."""

    def __init__(self, value: Any, why: str) -> None:
        super().__init__(why)
        self.value = value


class ValueKind(Protocol[T_co]):
    """A kind of values."""

    @property
    def allowed(self) -> str:
        """What a value may be, as the end of the sentence "Give …"."""

    def parse(self, value: Any, /) -> T_co:
        """Return the value of a text without spaces around it, or of a Python value. Raises ValueError."""


class TextKind(ValueKind[T_co], Protocol[T_co]):
    """A kind whose values have texts."""

    def text(self, value: Any, /) -> str:
        """Return the canonical text of a parsed value."""


class _Plain:
    """A kind whose values are written as Python writes them."""

    def text(self, value: Any) -> str:
        """Write the value."""
        return str(value)


@dataclass(frozen=True)
class Whole(_Plain):
    """A whole number in `low`..`high`, or `besides`, of a type of `bits` bits. `of`: its unit, for people."""

    low: int | None = None
    high: int | None = None
    bits: int | None = None
    besides: int | None = None
    of: str = ""

    @property
    def allowed(self) -> str:
        """The range in words."""
        kind = f"a whole number{self.of and f' of {self.of}'}"
        if self.low is not None and self.high is not None:
            kind += f" from {self.low} to {self.high}"
        elif self.low is not None:
            kind += f" of at least {self.low}"
        elif self.bits is not None:
            kind += f" of {self.bits} bits"
        return kind if self.besides is None else f"{kind}, or {self.besides}"

    def parse(self, value: Any) -> int:
        """Take whole numbers and their decimal texts."""
        number = int(value) if _is_whole(value) else None
        fits = number is not None and (self.bits is None or -1 << (self.bits - 1) <= number < 1 << (self.bits - 1))
        if number is None or not fits:
            kafkas_type = {16: "SHORT", 32: "INT"}.get(self.bits or 64, "LONG")
            raise WrongValueError(Problem.NO_WHOLE_NUMBER, self, value=value, type=kafkas_type)
        too_low = self.low is not None and number < self.low
        too_high = self.high is not None and number > self.high
        if (too_low or too_high) and number != self.besides:
            problem = Problem.TOO_LOW if too_low else Problem.TOO_HIGH
            raise WrongValueError(
                problem if self.besides is None else Problem.NEITHER_IN_RANGE_NOR_BESIDES,
                self,
                value=number,
                low=self.low,
                high=self.high,
                besides=self.besides,
            )
        return number


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value) is not None
    return value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Number(_Plain):
    """A number, with or without a fraction, in `low`..`high`."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def allowed(self) -> str:
        """The range in words."""
        return f"a number from {self.low} to {self.high}"

    def parse(self, value: Any) -> float:
        """Take numbers and their texts; NaN is in no range."""
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            value = float(value)
        facts = {"value": value, "low": self.low, "high": self.high}
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValueError(Problem.NO_NUMBER, self, **facts)
        if not self.low <= value <= self.high:
            raise WrongValueError(Problem.TOO_LOW if value < self.low else Problem.TOO_HIGH, self, **facts)
        return float(value)


@dataclass(frozen=True)
class Flag:
    """True or false, in any case. `words`: the texts that count."""

    words: Mapping[str, bool] = field(default_factory=lambda: TRUE_FALSE)
    allowed: str = "true or false"

    def parse(self, value: Any) -> bool:
        """Take bools and the texts."""
        flag = self.words.get(str(value).lower())
        if flag is None:
            raise WrongValueError(Problem.NO_FLAG, self, value=value)
        return flag

    def text(self, value: bool) -> str:
        """Write it in lower case."""
        return "true" if value else "false"


@dataclass(frozen=True)
class Choice(Generic[T]):
    """One of a few names, each for a value. `others`: why nothing else will do."""

    options: Mapping[str, T]
    any_case: bool = False
    others: str = ""

    @property
    def allowed(self) -> str:
        """The names."""
        return ("one of " if len(self.options) > 1 else "only ") + ", ".join(self.options)

    def parse(self, value: Any) -> T:
        """Take one of the names."""
        name = str(value)
        if self.any_case:
            name = next((option for option in self.options if option.lower() == name.lower()), name)
        if name not in self.options:
            raise (
                ValueError(self.others)
                if self.others
                else WrongValueError(Problem.NO_NAME, self, names=", ".join(self.options), value=value)
            )
        return self.options[name]

    def text(self, value: T) -> str:
        """Write the value's name."""
        return next(name for name, option in self.options.items() if option == value)


def names(*options: str, any_case: bool = False) -> Choice[str]:
    """Return a choice of names that stand for themselves."""
    return Choice({name: name for name in options}, any_case)


@dataclass(frozen=True)
class NameList:
    """Some of a few names, as a list or as a text with commas between them.

    `in_order`: the given order counts, and a name that is repeated counts once; there is at least one, in any
    case. Else the names are a set, which may be empty, and none is repeated; they keep the order given.
    """

    options: tuple[str, ...]
    in_order: bool = False

    @property
    def allowed(self) -> str:
        """The names."""
        return f"one or more of {', '.join(self.options)}, with commas between them"

    def parse(self, value: Any) -> tuple[str, ...]:
        """Take the names, in the order given."""
        parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [""]
        given = [str(part).strip() for part in parts] if value else []
        given = [name.lower() for name in given] if self.in_order else given
        if any(name not in self.options for name in given) or (self.in_order and not given):
            raise WrongValueError(Problem.NO_NAME, self, names=", ".join(self.options))
        if self.in_order:
            return tuple(dict.fromkeys(given))
        if len(set(given)) != len(given):
            raise WrongValueError(Problem.REPEATED_NAME, self)
        return tuple(given)

    def text(self, value: Iterable[str]) -> str:
        """Write the names."""
        return ",".join(value)


@dataclass(frozen=True)
class Text(_Plain):
    """A text of `low`..`high` characters; numbers and bools count as their texts.

    `in_line`: whether it has no line ends and no other characters that change what a terminal shows.
    """

    low: int = 0
    high: int | None = None
    in_line: bool = False

    @property
    def allowed(self) -> str:
        """The lengths, where they are bounded."""
        return "text" if self.high is None else f"text of {self.low} to {self.high} characters"

    def parse(self, value: Any) -> str:
        """Take a text as it is."""
        if isinstance(value, bytes | bytearray) or callable(value):
            raise ValueError("give a text")
        text = str(value)
        if len(text) < self.low or (self.high is not None and len(text) > self.high):
            raise ValueError(f"its length is {len(text)}, and allowed are {self.low} to {self.high} characters")
        if self.in_line and any(category(one) == "Cc" for one in text):
            raise ValueError("it has a control character, such as a line's end or a tab")
        return text


@dataclass(frozen=True)
class ReadBy(Generic[T]):
    """What a function makes of a value. `parse` raises ValueError, or an error that says all itself."""

    allowed: str
    parse: Callable[[Any], T]


@dataclass(frozen=True)
class Checked(Generic[T]):
    """Values of another kind that a rule takes. `check` raises ValueError, or an error that says all itself."""

    kind: ValueKind[T]
    check: Callable[[T], object]

    @property
    def allowed(self) -> str:
        """That of the kind."""
        return self.kind.allowed

    def parse(self, value: Any) -> T:
        """Take what the kind and the rule take."""
        parsed = self.kind.parse(value)
        try:
            self.check(parsed)
        except (WrongValueError, UnfitValueError):
            raise
        except ValueError as error:
            raise UnfitValueError(parsed, str(error)) from None
        return parsed


@dataclass(frozen=True)
class Matching(_Plain):
    """A text that a regular expression matches as a whole."""

    pattern: str
    allowed: str

    def parse(self, value: Any) -> str:
        """Take a text that matches."""
        if re.fullmatch(self.pattern, str(value)) is None:
            raise ValueError(f"give {self.allowed}")
        return str(value)


@dataclass(frozen=True)
class Texts:
    """Any number of texts, with commas between them, without the spaces around them."""

    allowed: str = "texts, with commas between them"

    def parse(self, value: Any) -> tuple[str, ...]:
        """Take a text with all of them."""
        return tuple(listed(str(value)))

    def text(self, value: Iterable[str]) -> str:
        """Write them, as they were given."""
        return ",".join(value)


def listed(text: str, separator: str = ",") -> list[str]:
    """The parts of a text between separators, without the spaces around them and without those that are empty."""
    return [stripped for part in text.split(separator) if (stripped := part.strip())]


def reason(error: ValueError, dialect: Dialect) -> str:
    """Why a kind does not take a value, in a dialect's words."""
    return error.said(dialect) if isinstance(error, WrongValueError) else str(error)


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is spelt most like `name`, None when none is near."""
    return next(iter(get_close_matches(str(name), list(known), n=1, cutoff=cutoff)), None)


def hint(name: object, known: Iterable[str], page: str) -> str:
    """A sentence that helps with an unknown name: the nearest one, or else the page that has all of them."""
    near = nearest(name, known)
    return f"The nearest known one is {near!r}." if near else f"docs/{page}.md has all of them."
