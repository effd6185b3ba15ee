"""What a broker is started with. Names and defaults are those of Kafka's brokers, where Kafka has the setting."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.access.token_settings import TokenSettings
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.listener_settings import ListenerSettings, SecurityProtocol, any_authenticates


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may take of a broker, so that the others notice nothing; Kafka's setting in the comment."""

    request_max_bytes: int = 100 * 1024 * 1024  # socket.request.max.bytes
    max_connections: int = 2**31 - 1  # max.connections
    max_connections_per_ip: int = 2**31 - 1  # max.connections.per.ip
    idle_s: float = 600.0  # connections.max.idle.ms
    queued_max_bytes: int = 128 * 1024 * 1024  # queued.max.request.bytes: requests that came and are not answered
    # Answers that clients have not taken yet: above this, no other fetch begins. Kafka has no such setting.
    unsent_max_bytes: int = 128 * 1024 * 1024
    # A client that has an answer to take, and takes nothing of it for so long, is dropped. Kafka has no such setting.
    stalled_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Linger:
    """How long produced records wait for others to share an entry with. Kafka has none of these settings.

    Files are what small appends cost: an entry writes one for each partition that it touches. A topic has a budget of
    `file_rate` small files a second, up to `file_burst`; only files below `small_file_bytes` count.
    """

    linger_s: float = 0.005
    linger_max_s: float = 0.5
    file_rate: float = 200.0
    file_burst: float = 2_000.0
    small_file_bytes: int = 256 * 1024
    enough_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What a broker asks of consumers' groups; Kafka's setting in the comment."""

    min_session_timeout_ms: int = 6_000  # group.min.session.timeout.ms
    max_session_timeout_ms: int = 1_800_000  # group.max.session.timeout.ms
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    max_size: int = 2**31 - 1  # group.max.size


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """How clients log in at listeners that have SASL; Kafka's setting in the comment.

    `max_receive_bytes`: the largest request of a client before it is logged in. `max_reauth_s`: how long a session
    lasts before its client has to log in again, 0 for ever; a token's end comes first. `failed_delay_s`: how long the
    answer to wrong credentials waits.
    """

    max_receive_bytes: int = 512 * 1024  # sasl.server.max.receive.size
    max_reauth_s: float = 0.0  # connections.max.reauth.ms
    failed_delay_s: float = 0.1  # connection.failed.authentication.delay.ms
    # A connection that is not logged in for so long is closed. Kafka has no such setting.
    login_within_s: float = 30.0
    # Wrong credentials that one address may send within a minute: then its connections are closed unheard, until it
    # may try again. Clients that share an address share the limit: one that repeats a wrong password for ever, as
    # librdkafka does some 8 times a second, leaves the others enough. Kafka has no such setting.
    failures_per_minute: int = 1000
    tokens: TokenSettings | None = None  # sasl.oauthbearer.*: of OAUTHBEARER, which needs it


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """How clients are held to their quotas; Kafka's setting in the comment.

    A client that was silent may take what its limit brings in one window at once; of changes of partitions, what it
    brings in all of them. Metrics show rates over all windows.
    """

    windows: int = 11  # quota.window.num
    window_s: float = 1.0  # quota.window.size.seconds
    controller_windows: int = 11  # controller.quota.window.num
    controller_window_s: float = 1.0  # controller.quota.window.size.seconds


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker.

    `listeners`: by name; `advertised`: {name: (host, port)} that clients get to see instead of where it is bound.
    `inter_broker`: the name of the listener that brokers ask each other on; None: the first.
    `id`: the broker's, None for the lowest one that is free. `cache_bytes`: of record batches kept for consumers.
    `linger`: None takes what suits the store.
    `drain_s`: how long a broker that stops sends clients to the others before it closes their connections.
    """

    listeners: Mapping[str, ListenerSettings]
    id: int | None = None
    rack: str | None = None
    advertised: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    inter_broker: str | None = None  # inter.broker.listener.name
    bounds: Bounds = field(default_factory=Bounds)
    drain_s: float = 5.0
    cache_bytes: int = 128 * 1024 * 1024
    linger: Linger | None = None
    default_replication_factor: int = 1  # default.replication.factor, of topics that are created without one
    deletes_topics: bool = True  # delete.topic.enable
    maintain_every_s: float = 60.0  # log.retention.check.interval.ms, of which a minute is the most that counts
    groups: GroupSettings = field(default_factory=GroupSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    sasl: SaslSettings = field(default_factory=SaslSettings)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)

    @property
    def brokers_listener(self) -> str:
        """The name of the listener that brokers ask each other on."""
        return self.inter_broker or next(iter(self.listeners), SecurityProtocol.PLAINTEXT.value)

    @property
    def everyone(self) -> bool:
        """Whether what no ACL is about is allowed to all: unless a listener authenticates, or as configured."""
        told = self.access.everyone
        return not any_authenticates(self.listeners) if told is None else told
