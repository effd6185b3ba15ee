"""Kinds of values that Connect's keys have besides those of all keys, and Kafka's sentences for wrong ones."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.data.errors import ConnectError
from tidelog.log.base.keys import FieldKey, KeyWords
from tidelog.log.base.typed_values import (
    Checked,
    Flag,
    Number,
    Text,
    UnfitValueError,
    ValueKind,
    Whole,
    WrongValueError,
    names,
    reason,
)
from tidelog.log.config.key_type import KAFKA, int_of, kafka_type, long_of


class ConnectConfigError(ConnectError):
    """A connector's configuration that can't be taken (Kafka's `ConfigException`)."""


class ConfigKind(StrEnum):
    """Kafka's types of values (`ConfigDef.Type`); CLASS is the name of a plugin."""

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


class SecretText:
    """A password, with the spaces around it."""

    allowed = "a text"

    def parse(self, value: Any) -> Password:
        """Take any text."""
        return Password(str(value))


class TextList:
    """Texts with commas between them, empty ones among them."""

    allowed = "texts, with commas between them"

    def parse(self, value: Any) -> list[str]:
        """Take a text with all of them."""
        return [part.strip() for part in value.split(",")] if value else []


class PluginName(Text):
    """The name of a class."""


def _filled(text: str) -> None:
    if not text:
        raise ValueError("String must be non-empty")


def check_pattern(text: str) -> None:
    """Raise `UnfitValueError` for what is no regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise UnfitValueError(text, f"Invalid regular expression: {error}") from None


FLAG: Final = Flag()
TEXT: Final = Text()
FILLED: Final = Checked(TEXT, _filled)
PATTERN: Final = Checked(TEXT, check_pattern)
CLASS: Final = PluginName()
SECRET: Final = SecretText()
TEXTS: Final = TextList()
KINDS: Final[Mapping[ConfigKind, ValueKind[Any]]] = {
    ConfigKind.BOOLEAN: FLAG,
    ConfigKind.STRING: TEXT,
    ConfigKind.INT: int_of(),
    ConfigKind.SHORT: Whole(bits=16),
    ConfigKind.LONG: long_of(),
    ConfigKind.DOUBLE: Number(),
    ConfigKind.LIST: TEXTS,
    ConfigKind.CLASS: CLASS,
    ConfigKind.PASSWORD: SECRET,
}
_OWN: Final = ((SecretText, ConfigKind.PASSWORD), (TextList, ConfigKind.LIST), (PluginName, ConfigKind.CLASS))


def as_written(*options: str) -> Checked[str]:
    """One of a few names in any case, which stays as it is written."""
    return Checked(TEXT, names(*options, any_case=True).parse)


def read_as(read: Callable[[str], object], kind: ValueKind[str] = TEXT) -> Checked[str]:
    """A text that a function takes, and which stays as it is; `ConnectConfigError` counts as its `ValueError`."""

    def check(text: str) -> None:
        try:
            read(text)
        except ConnectConfigError as error:
            raise ValueError(str(error)) from None

    return Checked(kind, check)


def type_of(kind: ValueKind[Any]) -> ConfigKind:
    """Kafka's type of a kind's values."""
    if isinstance(kind, Checked):
        return type_of(kind.kind)
    own = next((known for of, known in _OWN if isinstance(kind, of)), None)
    return own or ConfigKind[kafka_type(kind)]


class _ConfigWords(KeyWords[FieldKey]):
    """Kafka's sentences. A value of None is as it is."""

    def value(self, name: str, key: FieldKey, given: str | None) -> Any:
        """As `KeyWords` has it. Raises `ConnectConfigError`."""
        if given is None:
            return None
        text = given if type_of(key.kind) is ConfigKind.PASSWORD else given.strip()
        return parsed(name, text, key.kind)


WORDS: Final = _ConfigWords()


def parsed(name: str, value: Any, kind: ValueKind[Any]) -> Any:
    """What a kind makes of a value. Raises `ConnectConfigError` with Kafka's sentence."""
    try:
        return kind.parse(value)
    except ValueError as error:
        shown = error.value if isinstance(error, UnfitValueError) else value
        if isinstance(error, WrongValueError):
            shown = error.facts.get("value", value)
        raise invalid_value(name, shown, reason(error, KAFKA)) from None


def written_value(value: Any) -> str | None:
    """A value as text, as the REST API shows it; passwords are hidden."""
    if value is None:
        return None
    if isinstance(value, bool):
        return FLAG.text(value)
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def invalid_value(name: str, value: object, why: str) -> ConnectConfigError:
    """Kafka's sentence for a value that its key does not take."""
    return ConnectConfigError(f"Invalid value {_shown(value)} for configuration {name}: {why}")


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
