"""What a topic's and a lake's configuration have in common: keys with values of their own over inherited ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import KeyTable
from tidelog.log.base.typed_values import ValueKind, Whole, hint
from tidelog.log.config.key_type import Key


class KeyValue(NamedTuple):
    """A value of a key, as a text. `name`: what the key is called where it is set: "topic", "lake", … or "default"."""

    name: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class KeyDescription:
    """A key of a configuration. `values`: those that it has in all places; the first one is in force."""

    name: str
    kind: ValueKind[Any]
    doc: str
    values: tuple[KeyValue, ...]

    @property
    def value(self) -> str:
        """The value in force."""
        return self.values[0].text

    @property
    def source(self) -> str:
        """Where the value in force is set."""
        return self.values[0].source

    @property
    def is_default(self) -> bool:
        """Whether no value is set."""
        return self.source == "default"


@dataclass(frozen=True)
class Settings:
    """A set of keys, some with a value of their own. Frozen; the two mappings are not to be changed."""

    KEYS: ClassVar[Mapping[str, Key[Any]]] = {}
    REFUSED: ClassVar[Mapping[str, str]] = {}
    REFUSED_BEGINNINGS: ClassVar[Mapping[str, str]] = {}
    # another accepted name of a key -> its name, and how many of its units one of the other's is
    ALIASES: ClassVar[Mapping[str, tuple[str, int]]] = {}
    # names of keys that belong elsewhere -> where and how they are called there
    ELSEWHERE: ClassVar[Mapping[str, str]] = {}
    LEVEL: ClassVar[str] = ""

    own: Mapping[str, Any] = field(default_factory=dict)
    inherited: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str, default: Any) -> Any:
        """Return the value of the key `name`: its own, else the inherited one, else `default`."""
        return self.own[name] if name in self.own else self.inherited.get(name, default)

    @classmethod
    def refusal(cls, name: str) -> str | None:
        """Why a key that is none here would do nothing; None for one that is known nowhere."""
        begun = (why for begin, why in cls.REFUSED_BEGINNINGS.items() if name.startswith(begin))
        return cls.REFUSED.get(name) or next(begun, None)

    @classmethod
    def _is_refused(cls, name: str) -> bool:
        return not cls.knows(name) and cls.refusal(name) is not None

    @classmethod
    def knows(cls, name: str) -> bool:
        """Whether it is the name of a key, or another name of one."""
        return name in cls.KEYS or name in cls.ALIASES

    @classmethod
    def key_of(cls, name: str) -> Key[Any]:
        """The key of that name, or other name. Raises `InvalidConfigError` when it is refused or unknown."""
        return cls._table().key(name)

    def _is_set(self, name: str) -> bool:
        return name in self.own or name in self.inherited

    @property
    def overrides(self) -> dict[str, str]:
        """What is set here, as canonical texts by key, in the keys' order; parsing it gives the same again."""
        return {name: self.KEYS[name].kind.text(self.own[name]) for name in sorted(self.own)}

    def describe(self) -> list[KeyDescription]:
        """All keys with their values, in the keys' order."""
        return [self._described(self.KEYS[name]) for name in sorted(self.KEYS)]

    def _described(self, key: Key[Any]) -> KeyDescription:
        values = [KeyValue(key.lake_name, key.kind.text(key.default), "default")]
        if key.name in self.inherited:
            values.insert(0, KeyValue(key.lake_name, key.kind.text(self.inherited[key.name]), "lake"))
        if key.name in self.own:
            values.insert(0, KeyValue(key.name, key.kind.text(self.own[key.name]), self.LEVEL))
        return KeyDescription(key.name, key.kind, key.doc, tuple(values))

    @classmethod
    def _table(cls) -> KeyTable[Key[Any]]:
        names = {**cls.KEYS, **{name: cls.KEYS[other] for name, (other, _) in cls.ALIASES.items()}}
        return KeyTable(names, cls, lambda name: cls.ELSEWHERE.get(name) or cls.refusal(name), cls.REFUSED)

    @classmethod
    def _parsed(cls, mapping: Mapping[str, str]) -> dict[str, Any]:
        """Return the values by key; raise InvalidConfigError when a name or a value is wrong."""
        return cls._table().read(mapping.items())

    @classmethod
    def value(cls, name: str, key: Key[Any], given: str) -> Any:
        """The value of a key, given by one of its names. Raises `InvalidConfigError`, as what follows returns it."""
        return key.parse(cls._in_units(name, given))

    @classmethod
    def refused(cls, name: str, why: str) -> InvalidConfigError:
        """For a key that would do nothing."""
        if name in cls.ELSEWHERE:
            return InvalidConfigError(f"Configuration {name} is no key of a {cls.LEVEL}, so it would do nothing. {why}")
        return InvalidConfigError(f"Configuration {name} is refused, because it would do nothing: {why}. Leave it out.")

    @classmethod
    def unknown(cls, name: str, names: Iterable[str]) -> InvalidConfigError:
        """For what is no key."""
        return InvalidConfigError(
            f"Unknown {cls.LEVEL} configuration {name!r}: a key that nothing reads would do nothing."
            f" {hint(name, names, 'configuration')}"
        )

    @classmethod
    def twice(cls, key: Key[Any]) -> InvalidConfigError:
        """For a key that is set by two names."""
        return InvalidConfigError(
            f"Configuration {key.name} is set twice, under two names and to different values. Set it once."
        )

    @classmethod
    def _in_units(cls, name: str, text: str) -> str:
        """The value of a key's other name in the key's own units; a negative one means the same in all."""
        _, per = cls.ALIASES.get(name, (name, 1))
        if per == 1 or not isinstance(text, str):
            return text
        try:
            number = Whole(bits=32).parse(text.strip())
        except ValueError:
            raise InvalidConfigError(
                f"Invalid value {text.strip()} for configuration {name}: Not a number of type INT. Give a whole number."
            ) from None
        return str(number if number < 0 else number * per)

    def _changed(self, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Return the own values after changes; None takes a key's own value away.

        A refused key has none here, so to reset it changes nothing: Kafka's MirrorMaker resets each key that has its
        default at the source.
        """
        reset = {
            self.key_of(name).name for name, text in changes.items() if text is None and not self._is_refused(name)
        }
        given = self._parsed({name: text for name, text in changes.items() if text is not None})
        for name in reset & given.keys():
            raise InvalidConfigError(f"Configuration {name} is both set and reset. Do one of both.")
        return {name: value for name, value in self.own.items() if name not in reset} | given


def keys_of(settings: type[Settings]) -> dict[str, Key[Any]]:
    """The keys that are attributes of a class of settings, by name."""
    return {key.name: key for key in vars(settings).values() if isinstance(key, Key)}
