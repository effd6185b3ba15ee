"""Kinds of values that only clients' configuration keys take: functions, objects, addresses.

Values come as Python values or as texts, as confluent-kafka takes them. A kind raises ValueError with a reason that
ends the sentence `Invalid value "…" for configuration property "…": …`.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.log.base.typed_values import TRUE_FALSE, Dialect, Flag, Problem
from tidelog.log.storage.addresses import why_wrong
from tidelog.log.storage.options import StoreOptions

_OUTSIDE: Final = "outside allowed range {low}..{high}"
LIBRDKAFKA: Final[Dialect] = {
    Problem.NO_WHOLE_NUMBER: "give a whole number",
    Problem.NO_NUMBER: "give a number",
    Problem.TOO_LOW: _OUTSIDE,
    Problem.TOO_HIGH: _OUTSIDE,
    Problem.NO_FLAG: "expected bool value: true or false",
}
LIBRDKAFKA_FLAG: Final = Flag({**TRUE_FALSE, "t": True, "1": True, "f": False, "0": False})


@dataclass(frozen=True)
class Callback:
    """A function, `call` telling what it is called with. With `names`, one of these names will do as well."""

    call: str
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
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

    allowed: str
    methods: tuple[str, ...] = field(default=())

    def parse(self, value: Any) -> Any:
        """Take an object with those methods."""
        if not all(callable(getattr(value, method, None)) for method in self.methods):
            raise ValueError(f"give {self.allowed}")
        return value


@dataclass(frozen=True)
class Options:
    """A dict of texts by name."""

    allowed: str = "a dict"

    def parse(self, value: Any) -> StoreOptions:
        """Take a mapping; its values become texts."""
        if not isinstance(value, Mapping):
            raise ValueError("give a dict")
        return StoreOptions(value)


@dataclass(frozen=True)
class AddressKind:
    """A lake's address, or an opened `tidelog.Lake`."""

    allowed: str = (
        "a folder, `file://`, `s3://`, `gs://`, `az://`, `abfss://`, `memory://`, or an opened `tidelog.Lake`"
    )

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
