"""From a dict of configuration keys to typed settings: names, values, and what to say about the rest.

A class of settings is a frozen dataclass whose fields are made by `key`. `parse_keys` turns a client's dict into the
values of its fields. What it raises is librdkafka's code and wording, with what to do behind it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.clients.settings.value_types import LIBRDKAFKA, AddressKind, Options
from tidelog.clients.values.errors import invalid_argument
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import Text, ValueKind, nearest, reason
from tidelog.log.storage.options import StoreOptions, is_store_option, store_options

_METADATA: Final = "key"
# The field of the store's options.
_STORE: Final = "storage_options"

# confluent-kafka's old way to group the keys of topics: a dict within the dict
NESTED: Final = "default.topic.config"


@dataclass(frozen=True)
class ClientKey:
    """A supported key.

    `aliases`: its other names, librdkafka's and the Java client's. `unset`: its default in words, where its value has
    none.
    """

    name: str
    kind: ValueKind[Any]
    doc: str
    aliases: tuple[str, ...] = ()
    unset: str = ""


def key(name: str, default: Any, kind: ValueKind[Any], doc: str, *aliases: str, unset: str = "") -> Any:
    """Return a dataclass field that carries the key `name`."""
    return dataclasses.field(default=default, metadata={_METADATA: ClientKey(name, kind, doc, aliases, unset)})


def keys_of(settings: type[Any]) -> dict[str, ClientKey]:
    """Return the keys of a class of settings by the fields that carry them, in the fields' order."""
    return {field.name: field.metadata[_METADATA] for field in dataclasses.fields(settings) if field.metadata}


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
    own = _by_name(settings)
    others = {client: kind for client, kind in ClientKeys.CLIENTS.items() if not issubclass(settings, kind)}
    store: dict[str, Any] = {}
    foreign = {name: (who, key) for who, other in others.items() for name, (_, key) in _by_name(other).items()}
    values: dict[str, Any] = {}
    ignored: dict[str, str] = {}
    for name, value in _flat(conf):
        if value is None and (name in own or name in foreign or name in IGNORED or name in REFUSED):
            continue
        if isinstance(name, str) and is_store_option(name):
            if value is not None:
                store[name] = value
        elif name in own:
            field, known = own[name]
            parsed = _value(name, known, value)
            if values.setdefault(field, parsed) != parsed:
                raise invalid_argument(
                    f'Configuration property "{known.name}" is set twice, under two names and to different values.'
                    " Set it once."
                )
        elif reason := _refusal(name, settings):
            raise invalid_argument(f'Configuration property "{name}" is refused: {reason}.')
        elif name in foreign:
            who, known = foreign[name]
            _value(name, known, value)
            ignored[name] = f"it is a key of {who}"
        elif name in IGNORED or name in REFUSED_FOR_PRODUCERS:
            ignored[name] = IGNORED.get(name, "it is a key of a producer")
        else:
            raise invalid_argument(_unknown(name, own))
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


def _by_name(settings: type[Any]) -> dict[str, tuple[str, ClientKey]]:
    """Return a class's keys, by each of their names: (field, key)."""
    found = {}
    for field, known in keys_of(settings).items():
        for name in (known.name, *known.aliases):
            found[name] = (field, known)
    return found


def _value(name: str, known: ClientKey, value: Any) -> Any:
    trimmed = value.strip() if isinstance(value, str) and not isinstance(known.kind, Text) else value
    try:
        return known.kind.parse(trimmed)
    except ValueError as e:
        # An address or the store's options may hold secrets.
        shown = "" if isinstance(known.kind, Options | AddressKind) else f' "{value}"'
        why = reason(e, LIBRDKAFKA)
        raise invalid_argument(f'Invalid value{shown} for configuration property "{name}": {why}.') from None


def _refusal(name: Any, settings: type[ClientKeys]) -> str | None:
    if name in REFUSED_FOR_PRODUCERS and issubclass(settings, ClientKeys.CLIENTS["a producer"]):
        return REFUSED_FOR_PRODUCERS[name]
    return REFUSED.get(name)


def _unknown(name: Any, own: Iterable[str]) -> str:
    known = [*own, *IGNORED, *REFUSED, NESTED]
    # A client's own keys first: what differs by case or by - and _ alone, then what is nearest
    plain = {_plain(candidate): candidate for candidate in reversed(known)}
    near = plain.get(_plain(str(name))) or nearest(name, known)
    advice = f'The nearest known one is "{near}".' if near else "docs/clients.md has all of them."
    return f'No such configuration property: "{name}". {advice}'


def _plain(name: str) -> str:
    return name.lower().replace("_", ".").replace("-", ".")
