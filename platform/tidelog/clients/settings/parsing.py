"""From a dict of configuration keys to typed settings: names, values, and what to say about the rest.

A class of settings is a frozen dataclass whose fields are made by `key`. `parse_keys` turns a client's dict into the
values of its fields. What it raises is librdkafka's code and wording, with what to do behind it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.clients.settings.value_types import LIBRDKAFKA, AddressKind, Options
from tidelog.clients.values.errors import KafkaException, invalid_argument
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import FieldKey, KeyTable, fields_of, names_of
from tidelog.log.base.typed_values import Text, nearest, reason
from tidelog.log.storage.options import StoreOptions, is_store_option, store_options

# The field of the store's options.
_STORE: Final = "storage_options"

# confluent-kafka's old way to group the keys of topics: a dict within the dict
NESTED: Final = "default.topic.config"


class ClientKeys:
    """A class of settings. `client`: what it is of in words ("a producer"), where another kind of client knows it."""

    CLIENTS: ClassVar[dict[str, type["ClientKeys"]]] = {}

    def __init_subclass__(cls, client: str = "") -> None:
        super().__init_subclass__()
        if client:
            cls.CLIENTS[client] = cls


@dataclass(frozen=True)
class Parsed:
    """The result of parsing a dict of configuration.

    `values`: by field, for the keys that are set. `ignored`: the keys that are set and do nothing, with the reason.
    """

    values: Mapping[str, Any]
    ignored: Mapping[str, str]


def parse_keys(conf: Mapping[str, Any], settings: type[ClientKeys]) -> Parsed:
    """Check a client's dict against its class of settings.

    Keys of the other kinds of clients are checked and ignored, as librdkafka does. A value of None leaves its key
    unset. Raises KafkaException (`_INVALID_ARG`): a key that is unknown, refused, or set twice to different values; a
    value that its key does not take. Raises TypeError when `conf` is no mapping.
    """
    own = _table(settings)
    others = {client: kind for client, kind in ClientKeys.CLIENTS.items() if not issubclass(settings, kind)}
    foreign = {name: (client, key) for client, other in others.items() for name, key in _table(other).names.items()}
    store: dict[str, Any] = {}
    ignored: dict[str, str] = {}

    def own_keys() -> Iterator[tuple[Any, Any]]:
        for name, value in _flat(conf):
            if value is None and (name in own.names or name in foreign or name in IGNORED or name in REFUSED):
                continue
            if isinstance(name, str) and is_store_option(name):
                if value is not None:
                    store[name] = value
            elif name in own.names or own.refusal(name) is not None:
                yield name, value
            elif name in foreign:
                client, key = foreign[name]
                _WORDS.value(name, key, value)
                ignored[name] = f"it is a key of {client}"
            elif name in IGNORED or name in REFUSED_FOR_PRODUCERS:
                ignored[name] = IGNORED.get(name, "it is a key of a producer")
            else:
                yield name, value

    values = fields_of(settings, own.read(own_keys()))
    if store:
        values[_STORE] = _with_store_options(store, values.get(_STORE) or {})
    return Parsed(values, ignored)


def _with_store_options(store: Mapping[str, Any], together: Mapping[str, str]) -> StoreOptions:
    """The options that stand among the keys (`lake.s3.region`), and those of the dict. Shows no value."""
    try:
        options = store_options(store)
    except InvalidConfigError as e:
        raise invalid_argument(str(e)) from None
    for name in options:
        if together.get(name, options[name]) != options[name]:
            raise invalid_argument(
                f'Configuration property "{name}" is set twice, the other time in a dict of options and to a different'
                " value. Set it once."
            )
    return StoreOptions({**together, **options})


def _flat(conf: Mapping[str, Any]) -> Iterable[tuple[Any, Any]]:
    if not isinstance(conf, Mapping):
        raise TypeError(f"expected a dict of configuration, not {type(conf).__name__}")
    for name, value in conf.items():
        if name == NESTED:
            if value is not None and not isinstance(value, Mapping):
                raise invalid_argument(f'Invalid value for configuration property "{NESTED}": give a dict.')
            yield from (value or {}).items()
        else:
            yield name, value


class _ClientWords:
    """librdkafka's words, with what to do behind them."""

    def value(self, name: str, key: FieldKey, given: Any) -> Any:
        trimmed = given.strip() if isinstance(given, str) and not isinstance(key.kind, Text) else given
        try:
            return key.kind.parse(trimmed)
        except ValueError as e:
            # An address or the store's options may hold secrets.
            shown = "" if isinstance(key.kind, Options | AddressKind) else f' "{given}"'
            why = reason(e, LIBRDKAFKA)
            raise invalid_argument(f'Invalid value{shown} for configuration property "{name}": {why}.') from None

    def refused(self, name: str, why: str) -> KafkaException:
        return invalid_argument(f'Configuration property "{name}" is refused: {why}.')

    def unknown(self, name: Any, known: Iterable[str]) -> KafkaException:
        # A client's own keys first: what differs by case or by - and _ alone, then what is nearest
        names = [*known]
        plain = {_plain(candidate): candidate for candidate in reversed(names)}
        near = plain.get(_plain(str(name))) or nearest(name, names)
        advice = f'The nearest known one is "{near}".' if near else "docs/clients.md has all of them."
        return invalid_argument(f'No such configuration property: "{name}". {advice}')

    def twice(self, key: FieldKey) -> KafkaException:
        return invalid_argument(
            f'Configuration property "{key.name}" is set twice, under two names and to different values. Set it once.'
        )


def _plain(name: str) -> str:
    return name.lower().replace("_", ".").replace("-", ".")


_WORDS: Final = _ClientWords()


def _table(settings: type[ClientKeys]) -> KeyTable[FieldKey]:
    """A class's keys, and what is refused."""
    producers = REFUSED_FOR_PRODUCERS if issubclass(settings, ClientKeys.CLIENTS["a producer"]) else {}
    return KeyTable(names_of(settings), _WORDS, {**producers, **REFUSED}.get, (*IGNORED, *REFUSED, NESTED))
