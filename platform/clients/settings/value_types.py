"""Kinds of values that a client's configuration keys take.

Values come as Python values or as texts, as confluent-kafka takes them. A kind raises ValueError with a reason that
ends the sentence `Invalid value "…" for configuration property "…": …`.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tidelog.log.storage.addresses import why_wrong
from tidelog.log.storage.options import StoreOptions

# Twenty digits are more than any range has; longer ones would only cost time.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,3})?")


class Kind(Protocol):
    """A kind of values."""

    @property
    def takes(self) -> str:
        """What it takes, in words."""

    def parse(self, value: Any) -> Any:
        """Return the value that a client works with; raise ValueError with the reason where there is none."""


@dataclass(frozen=True)
class Whole:
    """A whole number in `low`..`high`, both allowed."""

    low: int
    high: int

    @property
    def takes(self) -> str:
        """The range."""
        return f"{self.low} .. {self.high}"

    def parse(self, value: Any) -> int:
        """Take whole numbers and their decimal texts."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError("give a whole number")
        number = value
        if not self.low <= number <= self.high:
            raise ValueError(f"outside allowed range {self.low}..{self.high}")
        return number


@dataclass(frozen=True)
class Number:
    """A number, with or without a fraction, in `low`..`high`, both allowed."""

    low: int
    high: int

    @property
    def takes(self) -> str:
        """The range."""
        return f"{self.low} .. {self.high}, fractions too"

    def parse(self, value: Any) -> float:
        """Take numbers and their texts; NaN lies in no range."""
        if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("give a number")
        if not self.low <= value <= self.high:
            raise ValueError(f"outside allowed range {self.low}..{self.high}")
        return float(value)


@dataclass(frozen=True)
class Flag:
    """True or false."""

    takes: str = "true, false"

    def parse(self, value: Any) -> bool:
        """Take bools, 0 and 1, and librdkafka's texts for them, in any case."""
        texts = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
        found = texts.get(str(value).strip().lower())
        if found is None:
            raise ValueError("expected bool value: true or false")
        return found


@dataclass(frozen=True)
class Choice:
    """One of a few words, in any case, each standing for a value. `others`: why nothing else will do."""

    options: Mapping[str, Any]
    others: str = ""

    @property
    def takes(self) -> str:
        """The words."""
        return ", ".join(self.options)

    def parse(self, value: Any) -> Any:
        """Take one of the words."""
        word = str(value).strip().lower()
        if word not in self.options:
            raise ValueError(self.others or f"give one of {self.takes}")
        return self.options[word]


def words(*names: str) -> Choice:
    """Return a choice of words that stand for themselves."""
    return Choice({name: name for name in names})


@dataclass(frozen=True)
class Text:
    """A text of `low`..`high` characters."""

    low: int = 0
    high: int | None = None

    @property
    def takes(self) -> str:
        """The lengths, where they are bounded."""
        return "text" if self.high is None else f"text of {self.low} .. {self.high} characters"

    def parse(self, value: Any) -> str:
        """Take texts, and what librdkafka's binding turns into texts: numbers and bools."""
        if isinstance(value, bytes | bytearray) or callable(value):
            raise ValueError("give a text")
        text = str(value)
        if len(text) < self.low or (self.high is not None and len(text) > self.high):
            raise ValueError(f"its length is {len(text)}, and allowed are {self.low} to {self.high} characters")
        return text


@dataclass(frozen=True)
class Names:
    """One or more of a few names, with commas between them or as a list."""

    known: tuple[str, ...]

    @property
    def takes(self) -> str:
        """The names."""
        return f"one or more of {', '.join(self.known)}, with commas between them"

    def parse(self, value: Any) -> tuple[str, ...]:
        """Take the names in the given order."""
        parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
        names = [str(part).strip().lower() for part in parts]
        wrong = [name for name in names if name not in self.known]
        if wrong or not names:
            raise ValueError(f"give {self.takes}")
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Callback:
    """A function, `call` telling what it is called with. With `names`, one of these names will do as well."""

    call: str
    names: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        """The names, and how the function is called."""
        return ", ".join([*self.names, f"`{self.call}`"])

    def parse(self, value: Any) -> Callable[..., Any] | str:
        """Take a callable, or one of the names."""
        if callable(value):
            function: Callable[..., Any] = value
            return function
        if isinstance(value, str) and value in self.names:
            return value
        raise ValueError(f"requires a callable object{' or one of ' + ', '.join(self.names) if self.names else ''}")


@dataclass(frozen=True)
class Instance:
    """An object that has the methods `methods`."""

    takes: str
    methods: tuple[str, ...] = field(default=())

    def parse(self, value: Any) -> Any:
        """Take an object with those methods."""
        if not all(callable(getattr(value, method, None)) for method in self.methods):
            raise ValueError(f"give {self.takes}")
        return value


@dataclass(frozen=True)
class Options:
    """A dict of texts by name."""

    takes: str = "a dict"

    def parse(self, value: Any) -> StoreOptions:
        """Take a mapping; its values become texts."""
        if not isinstance(value, Mapping):
            raise ValueError("give a dict")
        return StoreOptions(value)


@dataclass(frozen=True)
class Address:
    """A lake's address, or an opened `tidelog.Lake`."""

    takes: str = "a folder, `file://`, `s3://`, `gs://`, `az://`, `abfss://`, `memory://`, or an opened `tidelog.Lake`"

    def parse(self, value: Any) -> Any:
        """Take a path or a URI. Raises ValueError for an address that is none, with what to write instead."""
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str):
            if hasattr(value, "storage") and hasattr(value, "topics"):
                return value
            raise ValueError("give the lake's address as a text")
        address = text.strip()
        why = why_wrong(address)
        if why:
            raise ValueError(why.removesuffix("."))
        return address
