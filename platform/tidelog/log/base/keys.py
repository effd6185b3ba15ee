"""Keys of configurations: each is declared once, for the field that holds it, and one walk reads a mapping of them.

What is wrong is said in the words of the system whose keys they are: Kafka, librdkafka, Java, Spark.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import Flag, ValueKind

_METADATA: Final = "key"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


# The default of a key that has none, so that it must be given.
REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class FieldKey:
    """A key that a field of a dataclass holds.

    `default`: in the key's units, None for none; `unset`: the default in words, where its value has none. `aliases`:
    its other names. `per`: how many of the key's units make one of the field's. `stands`: a value, and what the field
    has for it. `secret`: what prints the field's class leaves it out.
    """

    name: str
    kind: ValueKind[Any]
    doc: str
    aliases: tuple[str, ...] = ()
    unset: str = ""
    default: Any = None
    per: int = 1
    stands: tuple[Any, Any] | None = None
    secret: bool = False

    def field(self) -> Any:
        """A field of a dataclass that holds the key."""
        default = self.held(self.default)
        return dataclasses.field(default=default, repr=not self.secret, metadata={_METADATA: self})

    def held(self, value: Any) -> Any:
        """What the field has for a parsed value."""
        if self.stands is not None and value == self.stands[0]:
            return self.stands[1]
        return value if self.per == 1 or value is None else value / self.per

    def text(self, held: Any) -> str:
        """The text of what a field holds."""
        if held is None:
            return ""
        if isinstance(held, bool):
            return Flag().text(held)
        if isinstance(held, tuple):
            return ",".join(held)
        return held if isinstance(held, str) else str(round(held * self.per))

    @property
    def usual(self) -> str:
        """The default as a text, or in words."""
        return self.unset or self.text(self.held(self.default))


def key(
    name: str,
    default: Any,
    kind: ValueKind[Any],
    doc: str,
    *aliases: str,
    unset: str = "",
    per: int = 1,
    secret: bool = False,
) -> Any:
    """A field of a dataclass that holds the key `name`."""
    return FieldKey(name, kind, doc, aliases, unset, default, per, secret=secret).field()


def keys_of(settings: type[Any]) -> dict[str, FieldKey]:
    """The keys of a dataclass by the fields that hold them, in the fields' order."""
    return {field.name: field.metadata[_METADATA] for field in dataclasses.fields(settings) if field.metadata}


def names_of(settings: type[Any]) -> dict[str, FieldKey]:
    """The keys of a dataclass by each of their names."""
    return {name: key for key in keys_of(settings).values() for name in (key.name, *key.aliases)}


def fields_of(settings: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields of a dataclass have for the values of keys, of those keys that have one."""
    return {field: key.held(values[key.name]) for field, key in keys_of(settings).items() if key.name in values}


class _Declared(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def default(self) -> Any: ...


K = TypeVar("K", bound=_Declared)
K_contra = TypeVar("K_contra", bound=_Declared, contravariant=True)


class KeyWords(Protocol[K_contra]):
    """How a system reads the values of its keys, and words what is wrong with a mapping of them.

    One that derives from it words what it needs itself, and has general words for the rest.
    """

    def value(self, name: str, key: K_contra, given: Any, /) -> Any:
        """The value that is given for a key by one of its names. Raises for one that the key does not take."""

    def refused(self, name: str, why: str, /) -> Exception:
        """The error for a key that is refused."""
        return InvalidConfigError(f"{name} is refused: {why}.")

    def unknown(self, name: Any, names: Iterable[str], /) -> Exception:
        """The error for what is no key; `names`: those that may have been meant."""
        return InvalidConfigError(f"There is no key {name!r}. There are {', '.join(names)}.")

    def twice(self, key: K_contra, /) -> Exception:
        """The error for a key that is set by two names, to different values."""
        return InvalidConfigError(f"{key.name} is set twice, under two names and to different values. Set it once.")


@dataclass(frozen=True, slots=True)
class JudgedKey(Generic[K]):
    """What a key has in a mapping: a value, or an error."""

    key: K
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class KeyTable(Generic[K]):
    """Keys by each of their names. `refusal`: why a name is refused, None for others; `beside`: names of no keys here
    that an unknown one may mean; `absent`: the value of a key that is not given, or raises for one that must be."""

    names: Mapping[str, K]
    words: KeyWords[K]
    refusal: Callable[[Any], str | None] = lambda _: None
    beside: Iterable[str] = ()
    absent: Callable[[K], Any] = lambda key: key.default

    def key(self, name: Any) -> K:
        """The key of a name. Raises the words' error for one that is refused or unknown."""
        if name in self.names:
            return self.names[name]
        why = self.refusal(name)
        raise self.words.unknown(name, [*self.names, *self.beside]) if why is None else self.words.refused(name, why)

    def read(self, given: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        """{key: value} of names with their values. Raises the words' errors."""
        values: dict[str, Any] = {}
        for name, text in given:
            key = self.key(name)
            value = self.words.value(name, key, text)
            if values.setdefault(key.name, value) != value:
                raise self.words.twice(key)
        return values

    def read_known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same of those names that are keys here, in the keys' order; others are left alone."""
        return self.read((name, given[name]) for name in self.names if name in given)

    def read_all(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """{key: value} of all keys, in their order; names that are no keys are left alone. Raises the words' errors."""
        return {key.name: self._value(key, given) for key in self.names.values()}

    def judge(self, given: Mapping[str, Any], errors: type[Exception]) -> Iterator[JudgedKey[K]]:
        """All keys with their values, as `read_all` has them, and `errors` in place of those that are wrong."""
        for key in self.names.values():
            try:
                yield JudgedKey(key, self._value(key, given))
            except errors as error:
                yield JudgedKey(key, error=error)

    def _value(self, key: K, given: Mapping[str, Any]) -> Any:
        return self.words.value(key.name, key, given[key.name]) if key.name in given else self.absent(key)
