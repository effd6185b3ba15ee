"""A broker's file of Kafka's keys: what becomes of each, and all that is wrong with it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tidelog.commands.failures import UsageProblemError
from tidelog.connect.config.providers import ConfigProviders
from tidelog.connect.data.errors import ConnectError
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import FieldKey
from tidelog.log.base.typed_values import listed, nearest
from tidelog.log.config.broker_keys import BROKER_KEYS, LISTENER_PREFIX, OF_LISTENERS
from tidelog.log.config.kafka_brokers import PASSED_OVER
from tidelog.log.config.topics_and_lakes import LakeConfig

# Classes whose rules are those of the lake's ACLs. Another one's rights would hold no more.
_AUTHORIZERS: Final = (
    "",
    "kafka.security.auth.SimpleAclAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer",
)
# Spelt so much alike, an unknown key is a mistake; another one may be a plugin's.
_ALIKE: Final = 0.9
# What a key's name has whose value stays hidden.
_SECRET_WORDS: Final = (
    "password",
    "secret",
    "jaas",
    "keystore.key",
    "passphrase",
    "credential",
    "license",
    "token.master",
)
# Kafka's order of keys for one value: the first that is there counts.
_FIRST_COUNTS: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
)


class KeyOutcome(StrEnum):
    """What becomes of a key."""

    USED = "used"
    LAKE = "the lake's"
    PASSED_OVER = "passed over"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key of a file: its value as it may be shown, its fate, and the key's meaning or the reason."""

    key: str
    value: str
    fate: KeyOutcome
    why: str


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A text that was given for a key, and how to say that it was: "The environment has …"."""

    text: str = field(repr=False)
    said: str

    def value(self, key: FieldKey) -> Any:
        """What the key's field has for it. Raises `UsageProblemError`."""
        try:
            return key.held(key.kind.parse(self.text.strip()))
        except ValueError as e:
            raise UsageProblemError(f"{self.said}={self.text!r}, and {key.name} is {key.kind.allowed}.") from e


def no_setting(where: str, name: str, near: str | None) -> UsageProblemError:
    """The error for a name that no setting of a broker has. `where`: what has it; `near`: what may be meant."""
    advice = f"Do you mean {near}?" if near else "docs/brokers.md has all of them."
    return UsageProblemError(f"{where} has {name}, which is no setting of a broker. {advice}")


@dataclass(slots=True)
class Problems:
    """All that is wrong, to be said at once."""

    found: list[str] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what the block refuses, and go on."""
        try:
            yield
        except (UsageProblemError, InvalidConfigError) as e:
            self.add(str(e))

    def add(self, said: str) -> None:
        """Note it, once."""
        if said not in self.found:
            self.found.append(said)

    def refuse(self) -> None:
        """Raise `UsageProblemError` with all of them, if there are any."""
        if len(self.found) == 1:
            raise UsageProblemError(self.found[0])
        if self.found:
            lines = "".join(f"\n- {one}" for one in self.found)
            raise UsageProblemError(f"{len(self.found)} things are wrong with the broker's settings:{lines}")


@dataclass(slots=True)
class TakenFile:
    """What a file says. `given`: settings of the broker; `lake`: keys of the lake; `rows`: what became of each key."""

    given: dict[str, GivenSetting] = field(default_factory=dict)
    lake: dict[str, str] = field(default_factory=dict)
    rows: list[KeyRow] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)

    def passed_over(self) -> str:
        """The keys that were passed over and why, as one line; "" for none."""
        by_reason: dict[str, list[str]] = {}
        for row in self.rows:
            if row.fate is KeyOutcome.PASSED_OVER:
                by_reason.setdefault(row.why, []).append(row.key)
        return "; ".join(f"{', '.join(keys)}: {why}" for why, keys in by_reason.items())


def take(config: Mapping[str, str], path: str) -> TakenFile:
    """What becomes of each key of a file. Its `problems` are not raised."""
    taken = TakenFile()
    try:
        config = ConfigProviders(config).resolved(config).config
    except ConnectError as e:
        taken.problems.add(f"{path}: {e}")
    unheard = _unheard(config)
    for key, text in config.items():
        row = _row(key, text, config, path, unheard, taken)
        taken.rows.append(row)
        if row.fate is KeyOutcome.WRONG:
            taken.problems.add(row.why)
    if taken.lake:
        with taken.problems.noted():
            LakeConfig.parse({key: value for key, value in taken.lake.items() if key not in _wrong_keys(taken)})
    return taken


def _row(
    key: str, text: str, config: Mapping[str, str], path: str, unheard: frozenset[str], taken: TakenFile
) -> KeyRow:
    name = named(key)
    listener, bare = _parts(name)

    def row(fate: KeyOutcome, why: str) -> KeyRow:
        return KeyRow(key, shown(key, text), fate, why)

    if listener is not None and listener.upper() in unheard:
        return row(KeyOutcome.PASSED_OVER, f"the listener {listener.upper()} is not one of this broker's")
    if (why := _refusal(bare, text, path)) is not None:
        return row(KeyOutcome.WRONG, why)
    if bare in (_OF_LISTENERS if listener is not None else BROKER_KEYS):
        if name in ("listeners", "advertised.listeners"):
            text = _without(text, controller_names(config))
        given = GivenSetting(text, f"{path} has {key}")
        try:
            given.value(BROKER_KEYS[bare])
        except UsageProblemError as e:
            return row(KeyOutcome.WRONG, str(e))
        if text.strip() or name != "listeners":
            taken.given[name] = given
        if name in LakeConfig.KEYS and text.strip():
            taken.lake[name] = text.strip()  # commands go by the lake's
        return row(KeyOutcome.USED, BROKER_KEYS[bare].doc)
    if listener is not None and bare in BROKER_KEYS:
        return row(
            KeyOutcome.PASSED_OVER, f"{bare} counts for all listeners together: give it without the listener's name"
        )
    if listener is None and LakeConfig.knows(bare) and bare not in PASSED_OVER:
        return _lake_row(key, text, config, path, taken)
    # A mechanism's name may come before what is the mechanism's own: scram-sha-256.sasl.jaas.config.
    of_mechanism = bare.partition(".")[2] if listener is not None else ""
    if (why := LakeConfig.refusal(bare) or LakeConfig.refusal(of_mechanism)) is not None:
        return row(KeyOutcome.PASSED_OVER, why)
    if bare in LakeConfig.ELSEWHERE:
        return row(KeyOutcome.WRONG, f"{path} has {key}, which is a topic's key. {LakeConfig.ELSEWHERE[bare]}")
    if near := nearest(bare, {*BROKER_KEYS, *LakeConfig.KEYS, *PASSED_OVER}, _ALIKE):
        return row(KeyOutcome.WRONG, str(no_setting(path, key, near)))
    return row(KeyOutcome.PASSED_OVER, "neither Kafka nor tidelog has such a key: it may be a plugin's")


def _lake_row(key: str, text: str, config: Mapping[str, str], path: str, taken: TakenFile) -> KeyRow:
    for order in _FIRST_COUNTS:
        first = next((one for one in order if one in config), key)
        if key in order and key != first:
            return KeyRow(key, text, KeyOutcome.PASSED_OVER, f"{first} comes before it")
    try:
        LakeConfig.parse({key: text})
    except InvalidConfigError as e:
        return KeyRow(key, text, KeyOutcome.WRONG, f"{path}: {e}")
    taken.lake[key] = text
    found = LakeConfig.key_of(key)
    return KeyRow(key, text, KeyOutcome.LAKE, found.doc if found.name == key else f"Sets {found.name}. {found.doc}")


def _wrong_keys(taken: TakenFile) -> set[str]:
    return {row.key for row in taken.rows if row.fate is KeyOutcome.WRONG}


def _refusal(bare: str, text: str, path: str) -> str | None:
    """What is wrong with a key that can't be passed over in silence: what it asks for must not be left out."""
    if bare == "authorizer.class.name" and text.strip() not in _AUTHORIZERS:
        return (
            f"{path} has {bare}={text.strip()}, whose rights would not hold here: ACLs of the lake do ('tidelog acl"
            " add'). Take the line out once they give each user its rights."
        )
    if bare == "process.roles" and text.strip() and "broker" not in listed(text):
        return (
            f"{path} has {bare}={text.strip()}: it is the file of a controller, of which a lake has none. Start the"
            " brokers by theirs."
        )
    return None


def _unheard(config: Mapping[str, str]) -> frozenset[str]:
    """Names of listeners that a file knows and this broker does not have: controllers', and those of other brokers."""

    def names(key: str, mark: str) -> set[str]:
        return {one.partition(mark)[0].strip().upper() for one in listed(config.get(key, ""))} - {""}

    controllers = controller_names(config)
    if not config.get("listeners"):
        return frozenset(controllers)
    return frozenset(controllers | (names("listener.security.protocol.map", ":") - names("listeners", "://")))


def _without(listeners: str, names: set[str]) -> str:
    """Those of the listeners that have none of these names."""
    return ",".join(one for one in listed(listeners) if one.partition("://")[0].strip().upper() not in names)


def controller_names(config: Mapping[str, Any]) -> set[str]:
    """The names of controllers' listeners, which brokers don't have."""
    return {name.upper() for name in listed(config.get("controller.listener.names", ""))}


def named(key: str) -> str:
    """A key as the tables have it: a listener's name in lower case, as Kafka writes it there."""
    if not key.startswith(LISTENER_PREFIX):
        return key
    name, _, rest = key.removeprefix(LISTENER_PREFIX).partition(".")
    return f"{LISTENER_PREFIX}{name.lower()}.{rest}"


def _parts(name: str) -> tuple[str | None, str]:
    """The listener that a key is of, None for none, and the rest."""
    if not name.startswith(LISTENER_PREFIX):
        return None, name
    listener, _, bare = name.removeprefix(LISTENER_PREFIX).partition(".")
    return listener, bare


def shown(key: str, text: str) -> str:
    """A value as it may be shown."""
    return "(hidden)" if text and any(word in key for word in _SECRET_WORDS) else text


_OF_LISTENERS: Final = frozenset(one.name for one in OF_LISTENERS)
