"""Kinds of values of a configuration: how each is read from its text and written back (Kafka's `ConfigDef.Type`)."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.data.errors import ConnectError


class ConnectConfigError(ConnectError):
    """A connector's configuration that can't be taken (Kafka's `ConfigException`)."""


class ConfigKind(StrEnum):
    """The kinds of values; CLASS is the name of a plugin."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105


class Password:
    """A text that is shown as `[hidden]` wherever it is printed; `text` has it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


_BITS: Final = {ConfigKind.SHORT: 16, ConfigKind.INT: 32, ConfigKind.LONG: 64}
_WORDS: Final = {
    ConfigKind.BOOLEAN: "Expected value to be either true or false",
    ConfigKind.SHORT: "Not a number of type SHORT",
    ConfigKind.INT: "Not a number of type INT",
    ConfigKind.LONG: "Not a number of type LONG",
    ConfigKind.DOUBLE: "Not a number of type DOUBLE",
}


def _boolean(text: str) -> bool:
    words = {"true": True, "false": False}
    return words[text.lower()]


def _list(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")] if text else []


def _whole(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else None
        if number is None or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise ValueError
        return number

    return read


_READERS: Final[Mapping[ConfigKind, Callable[[str], Any]]] = {
    ConfigKind.BOOLEAN: _boolean,
    ConfigKind.DOUBLE: float,
    ConfigKind.LIST: _list,
    ConfigKind.PASSWORD: Password,
    **{kind: _whole(bits) for kind, bits in _BITS.items()},
}


def read_value(name: str, text: str | None, kind: ConfigKind) -> Any:
    """The value of a text: str, int, float, bool, list of str or `Password`; None of None.

    Raises `ConnectConfigError` with Kafka's sentence.
    """
    if text is None:
        return None
    trimmed = text if kind is ConfigKind.PASSWORD else text.strip()
    try:
        return _READERS.get(kind, str)(trimmed)
    except (ValueError, KeyError):
        raise invalid_value(name, trimmed, _WORDS[kind]) from None


def written_value(value: Any) -> str | None:
    """A value as text, as the REST API shows it; passwords are hidden."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def invalid_value(name: str, value: object, why: str) -> ConnectConfigError:
    """Kafka's sentence for a value that its key does not take."""
    return ConnectConfigError(f"Invalid value {_shown(value)} for configuration {name}: {why}")


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
