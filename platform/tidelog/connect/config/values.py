"""Kinds of values of a configuration: how each is read from its text and written back (Kafka's `ConfigDef.Type`)."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.data.errors import ConnectError
from tidelog.log.base.keys import FieldKey, KeyWords
from tidelog.log.base.typed_values import Flag, Number, Whole, reason
from tidelog.log.config.key_type import KAFKA


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


def _list(text: str) -> list[str]:
    return [one.strip() for one in text.split(",")] if text else []


_READERS: Final[Mapping[ConfigKind, Callable[[str], Any]]] = {
    ConfigKind.BOOLEAN: Flag().parse,
    ConfigKind.STRING: str,
    ConfigKind.SHORT: Whole(bits=16).parse,
    ConfigKind.INT: Whole(bits=32).parse,
    ConfigKind.LONG: Whole(bits=64).parse,
    ConfigKind.DOUBLE: Number().parse,
    ConfigKind.LIST: _list,
    ConfigKind.CLASS: str,
    ConfigKind.PASSWORD: Password,
}


def read_value(name: str, text: str | None, kind: ConfigKind) -> Any:
    """The value of a text: str, int, float, bool, list of str or `Password`; None of None.

    Raises `ConnectConfigError` with Kafka's sentence.
    """
    if text is None:
        return None
    return _parsed(name, text if kind is ConfigKind.PASSWORD else text.strip(), _READERS[kind])


def _parsed(name: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise invalid_value(name, text, reason(error, KAFKA)) from None


class _ConfigWords(KeyWords[FieldKey]):
    """Kafka's sentences for keys that are fields."""

    def value(self, name: str, key: FieldKey, given: str) -> Any:
        """As `KeyWords` has it. Raises `ConnectConfigError`."""
        return _parsed(name, given.strip(), key.kind.parse)


WORDS: Final = _ConfigWords()


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
