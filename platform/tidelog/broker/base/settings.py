"""What a broker is started with. Names and defaults are those of Kafka's brokers, where Kafka has the setting."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, Self

from tidelog.access.token_settings import TokenSettings
from tidelog.broker.base.access import AccessSettings
from tidelog.cluster.model import ALL
from tidelog.groups.rules.migration import Migration
from tidelog.log.base.keys import keys_of
from tidelog.log.config.broker_keys import held
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol, any_authenticates


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may take of a broker, so that the others notice nothing."""

    request_max_bytes: int = held("socket.request.max.bytes")
    max_connections: int = held("max.connections")
    max_connections_per_ip: int = held("max.connections.per.ip")
    idle_s: float = held("connections.max.idle.ms")
    queued_max_bytes: int = held("queued.max.request.bytes")
    # Answers that clients have not taken yet: above this, no other fetch begins. Kafka has no such setting.
    unsent_max_bytes: int = held("unsent.max.bytes")
    # A client that has an answer to take, and takes nothing of it for so long, is dropped. Kafka has no such setting.
    stalled_s: float = held("stalled.reader.ms")


@dataclass(frozen=True, slots=True)
class Linger:
    """How long produced records wait for others to share an entry with. Kafka has none of these settings.

    Files are what small appends cost: an entry writes one for each partition that it touches. A topic has a budget of
    small files, up to `file_burst`; only files below `small_file_bytes` count. It refills by `spare_file_rate` a second
    while the process takes less than `spare` of a core, by `file_rate` once it takes `busy` of one.
    The next entry is staged while one is committed where commits take `overlap_s` or longer, and the process less than
    `busy` of a core.
    """

    linger_s: float = 0.005
    linger_max_s: float = 0.5
    file_rate: float = 200.0
    spare_file_rate: float = 1_000.0
    spare: float = 0.5
    busy: float = 0.7
    file_burst: float = 2_000.0
    small_file_bytes: int = 256 * 1024
    enough_bytes: int = 16 * 1024 * 1024
    overlap_s: float = 0.005


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What a broker asks of consumers' groups."""

    min_session_timeout_ms: int = held("group.min.session.timeout.ms")
    max_session_timeout_ms: int = held("group.max.session.timeout.ms")
    initial_rebalance_delay_ms: int = held("group.initial.rebalance.delay.ms")
    max_size: int = held("group.max.size")
    # Of groups of the type consumer.
    consumer_session_timeout_ms: int = held("group.consumer.session.timeout.ms")
    consumer_heartbeat_interval_ms: int = held("group.consumer.heartbeat.interval.ms")
    consumer_min_session_timeout_ms: int = held("group.consumer.min.session.timeout.ms")
    consumer_max_session_timeout_ms: int = held("group.consumer.max.session.timeout.ms")
    consumer_min_heartbeat_interval_ms: int = held("group.consumer.min.heartbeat.interval.ms")
    consumer_max_heartbeat_interval_ms: int = held("group.consumer.max.heartbeat.interval.ms")
    consumer_max_size: int = held("group.consumer.max.size")
    # Of streams groups.
    streams_session_timeout_ms: int = held("group.streams.session.timeout.ms")
    streams_heartbeat_interval_ms: int = held("group.streams.heartbeat.interval.ms")
    streams_min_session_timeout_ms: int = held("group.streams.min.session.timeout.ms")
    streams_max_session_timeout_ms: int = held("group.streams.max.session.timeout.ms")
    streams_min_heartbeat_interval_ms: int = held("group.streams.min.heartbeat.interval.ms")
    streams_max_heartbeat_interval_ms: int = held("group.streams.max.heartbeat.interval.ms")
    streams_max_size: int = held("group.streams.max.size")
    streams_initial_rebalance_delay_ms: int = held("group.streams.initial.rebalance.delay.ms")
    streams_standby_replicas: int = held("group.streams.num.standby.replicas")
    streams_max_standby_replicas: int = held("group.streams.max.standby.replicas")
    assignors: str = held("group.consumer.assignors")
    migration: str = held("group.consumer.migration.policy")

    @property
    def consumer_assignors(self) -> tuple[str, ...]:
        """The assignors of the consumer protocol, the default first."""
        return tuple(self.assignors.split(","))

    @property
    def migration_policy(self) -> Migration:
        """Which groups with members change their type."""
        return Migration(self.migration)


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """How clients log in at listeners that have SASL.

    `max_receive_bytes`: the largest request of a client before it is logged in. `max_reauth_s`: how long a session
    lasts before its client has to log in again, 0 for ever; a token's end comes first. `failed_delay_s`: how long the
    answer to wrong credentials waits.
    """

    max_receive_bytes: int = held("sasl.server.max.receive.size")
    max_reauth_s: float = held("connections.max.reauth.ms")
    failed_delay_s: float = held("connection.failed.authentication.delay.ms")
    # A connection that is not logged in for so long is closed. Kafka has no such setting.
    login_within_s: float = held("login.timeout.ms")
    # Wrong credentials that one address may send within a minute: then its connections are closed unheard, until it
    # may try again. Clients that share an address share the limit: one that repeats a wrong password for ever, as
    # librdkafka does some 8 times a second, leaves the others enough. Kafka has no such setting.
    failures_per_minute: int = held("login.failures.per.minute")
    tokens: TokenSettings | None = None  # sasl.oauthbearer.*: of OAUTHBEARER, which needs it


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """How clients are held to their quotas.

    A client that was silent may take what its limit brings in one window at once; of changes of partitions, what it
    brings in all of them. Metrics show rates over all windows.
    """

    windows: int = held("quota.window.num")
    window_s: float = held("quota.window.size.seconds")
    controller_windows: int = held("controller.quota.window.num")
    controller_window_s: float = held("controller.quota.window.size.seconds")


@dataclass(frozen=True, slots=True)
class ClientTelemetrySettings:
    """What clients may push of their own metrics."""

    max_bytes: int = held("telemetry.max.bytes")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker.

    `listeners`: by name; `advertised`: {name: (host, port)} that clients get to see instead of where it is bound.
    `inter_broker`: the name of the listener that brokers ask each other on; None: the first.
    `id`: the broker's, None for the lowest one that is free. `cache_bytes`: of record batches kept for consumers;
    `cache_files_bytes`: the same in files, of `cache_files_dir`, None for the system's folder.
    `linger`: None takes what suits the store.
    `drain_s`: how long a broker that stops sends clients to the others before it closes their connections.
    """

    listeners: Mapping[str, ListenerSettings]
    id: int | None = held("broker.id")
    rack: str | None = held("broker.rack")
    advertised: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    inter_broker: str | None = None  # inter.broker.listener.name
    bounds: Bounds = field(default_factory=Bounds)
    drain_s: float = 5.0
    cache_bytes: int = held("cache.bytes")
    cache_files_bytes: int = held("cache.files.bytes")
    cache_files_dir: str | None = held("cache.files.dir")
    linger: Linger | None = None
    topic_leaders: str = held("topic.leaders")
    topic_leaders_interval_s: float = held("topic.leaders.interval.ms")
    default_replication_factor: int = held("default.replication.factor")
    deletes_topics: bool = held("delete.topic.enable")
    maintain_every_s: float = held("log.retention.check.interval.ms")
    groups: GroupSettings = field(default_factory=GroupSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    sasl: SaslSettings = field(default_factory=SaslSettings)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
    telemetry: ClientTelemetrySettings = field(default_factory=ClientTelemetrySettings)

    def value(self, key: str) -> Any:
        """What the field of a key has."""
        group, name = PLACES[key]
        return getattr(getattr(self, group) if group else self, name)

    def with_value(self, key: str, value: Any) -> Self:
        """The settings with another value in the field of a key."""
        group, name = PLACES[key]
        changed = {name: value}
        return replace(self, **({group: replace(getattr(self, group), **changed)} if group else changed))

    @property
    def most_leaders(self) -> int | None:
        """The most brokers that lead a topic, None for as many as its load needs; `ALL`: all of them do."""
        words: dict[str, int | None] = {"auto": None, "all": ALL}
        return words[self.topic_leaders] if self.topic_leaders in words else int(self.topic_leaders)

    @property
    def brokers_listener(self) -> str:
        """The name of the listener that brokers ask each other on."""
        return self.inter_broker or next(iter(self.listeners), SecurityProtocol.PLAINTEXT.value)

    @property
    def everyone(self) -> bool:
        """Whether what no ACL is about is allowed to all: unless a listener authenticates, or as configured."""
        told = self.access.everyone
        return not any_authenticates(self.listeners) if told is None else told


_GROUPS: Final[Mapping[str, Any]] = {"": BrokerSettings} | {
    one.name: one.default_factory for one in fields(BrokerSettings) if is_dataclass(one.default_factory)
}
# {key: (group of settings, field)}, "" for what `BrokerSettings` itself has.
PLACES: Final = {key.name: (group, name) for group, kind in _GROUPS.items() for name, key in keys_of(kind).items()}
