"""Settings of brokers that are numbers. In the environment: TIDELOG_BROKER_ and the name of Kafka's setting."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from tidelog.broker.base.settings import BrokerSettings
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.typed_values import MAX_INT, MAX_LONG, Flag, Whole

PREFIX: Final = "TIDELOG_BROKER_"


def variable_of(name: str) -> str:
    """A setting's variable: TIDELOG_BROKER_MAX_CONNECTIONS for max.connections."""
    return PREFIX + name.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class EnvironmentSetting:
    """A setting: its name, where `BrokerSettings` has it ("" for itself), its values, and their unit there.

    `per`: how many of the setting's units make one of the field's.
    """

    name: str
    group: str
    field: str
    kind: Whole
    meaning: str
    per: int = 1

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return variable_of(self.name)

    def default(self) -> int:
        """Its value where nothing is set."""
        settings: Any = BrokerSettings({})
        value: float = getattr(getattr(settings, self.group) if self.group else settings, self.field)
        return round(value * self.per)


_BYTES = Whole(1024, MAX_LONG, of="bytes")
_INT_BYTES = Whole(1024, MAX_INT, of="bytes")
_MS = Whole(1, MAX_LONG, of="ms")
_MS_0 = Whole(0, MAX_INT, of="ms")
_COUNT = Whole(1, MAX_INT)


def _bound(name: str, field: str, kind: Whole, meaning: str, per: int = 1) -> EnvironmentSetting:
    return EnvironmentSetting(name, "bounds", field, kind, meaning, per)


def _group(name: str, field: str, kind: Whole, meaning: str) -> EnvironmentSetting:
    return EnvironmentSetting(name, "groups", field, kind, meaning)


def _quota(name: str, field: str, kind: Whole, meaning: str) -> EnvironmentSetting:
    return EnvironmentSetting(name, "quotas", field, kind, meaning)


def _sasl(name: str, field: str, kind: Whole, meaning: str, per: int = 1) -> EnvironmentSetting:
    return EnvironmentSetting(name, "sasl", field, kind, meaning, per)


SETTINGS: Final = (
    _bound("socket.request.max.bytes", "request_max_bytes", _INT_BYTES, "the largest request"),
    _bound("max.connections", "max_connections", _COUNT, "the most connections; more are refused"),
    _bound("max.connections.per.ip", "max_connections_per_ip", _COUNT, "the most connections from one address"),
    _bound("connections.max.idle.ms", "idle_s", _MS, "a connection that is silent for longer is closed", 1000),
    _bound("queued.max.request.bytes", "queued_max_bytes", _BYTES, "while more wait for an answer, none is read"),
    _bound("unsent.max.bytes", "unsent_max_bytes", _BYTES, "while more answers wait for clients, no fetch begins"),
    _bound(
        "stalled.reader.ms",
        "stalled_s",
        _MS,
        "a client that takes nothing of an answer for longer is dropped; for 5 s, where fetches wait for room",
        1000,
    ),
    EnvironmentSetting("cache.bytes", "", "cache_bytes", _BYTES, "record batches that are kept for consumers"),
    EnvironmentSetting(
        "default.replication.factor",
        "",
        "default_replication_factor",
        Whole(1, 32_767),
        "of topics that are created without one",
    ),
    EnvironmentSetting(
        "log.retention.check.interval.ms",
        "",
        "maintain_every_s",
        _MS,
        "how often the lake is maintained, unless `--no-maintain`; every minute at least, for small files too",
        1000,
    ),
    _group("group.min.session.timeout.ms", "min_session_timeout_ms", _MS, "the shortest session of a member"),
    _group("group.max.session.timeout.ms", "max_session_timeout_ms", _MS, "the longest session of a member"),
    _group("group.initial.rebalance.delay.ms", "initial_rebalance_delay_ms", _MS_0, "how long a new group waits"),
    _group("group.max.size", "max_size", _COUNT, "the most members of a group"),
    _quota("quota.window.num", "windows", _COUNT, "the windows that the rates of quotas' metrics are a mean of"),
    _quota(
        "quota.window.size.seconds",
        "window_s",
        _COUNT,
        "the length of a window: a client that was silent may take at once what its quota allows in one",
    ),
    _quota(
        "controller.quota.window.num",
        "controller_windows",
        _COUNT,
        "the windows whose changes of partitions a client may make at once",
    ),
    _quota("controller.quota.window.size.seconds", "controller_window_s", _COUNT, "the length of one of them"),
    _sasl("sasl.server.max.receive.size", "max_receive_bytes", _INT_BYTES, "the largest request before a log-in"),
    _sasl("connections.max.reauth.ms", "max_reauth_s", _MS_0, "how long a log-in lasts; 0: for ever", 1000),
    _sasl(
        "connection.failed.authentication.delay.ms",
        "failed_delay_s",
        _MS_0,
        "how long the answer to wrong credentials waits",
        1000,
    ),
    _sasl(
        "login.timeout.ms", "login_within_s", _MS, "a connection that has not logged in after so long is closed", 1000
    ),
    _sasl(
        "login.failures.per.minute",
        "failures_per_minute",
        _COUNT,
        "wrong credentials that one address may send; then its connections are closed for a while",
    ),
)


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A value that was given for a setting, and how to say that it was: "The environment has …"."""

    text: str = field(repr=False)
    said: str

    def parse(self, name: str, kind: Whole | Flag) -> Any:
        """The value, for the setting `name`. Raises `UsageProblemError`."""
        try:
            return kind.parse(self.text.strip())
        except ValueError as e:
            raise UsageProblemError(f"{self.said}={self.text!r}, and {name} is {kind.allowed}.") from e


def with_number(settings: BrokerSettings, setting: EnvironmentSetting, given: GivenSetting) -> BrokerSettings:
    """The settings with one more. Raises `UsageProblemError`."""
    value: Any = given.parse(setting.name, setting.kind)
    value = value if setting.per == 1 else value / setting.per
    if setting.group:
        changed = {setting.group: replace(getattr(settings, setting.group), **{setting.field: value})}
    else:
        changed = {setting.field: value}
    return replace(settings, **changed)
