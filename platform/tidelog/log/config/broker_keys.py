"""Keys of tidelog's brokers: each one's name, values, default and meaning, declared here once.

The fields of brokers' settings that hold them, files, the environment, DescribeConfigs, `tidelog broker check-config`
and docs/brokers.md go by these declarations, and a lake says of these keys whose they are.
"""

from dataclasses import replace
from typing import Any, Final

from tidelog.log.base.keys import FieldKey
from tidelog.log.base.typed_values import MAX_INT, MAX_LONG, Flag, Matching, Text, Texts, Whole

LISTENER_PREFIX: Final = "listener.name."

_MB: Final = 1024 * 1024
_BYTES = Whole(1024, MAX_LONG, of="bytes")
_INT_BYTES = Whole(1024, MAX_INT, of="bytes")
_MS = Whole(1, MAX_LONG, of="ms")
_MS_0 = Whole(0, MAX_INT, of="ms")
_COUNT = Whole(1, MAX_INT)
# What stands for ever, in seconds: clocks of event loops take no infinite times.
_TEN_YEARS_S: Final = 315_360_000.0
_QUEUED_BYTES: Final = 128 * _MB


def _time(name: str, default: int, kind: Whole, meaning: str, stands: tuple[int, float] | None = None) -> FieldKey:
    """A key in milliseconds whose field is in seconds."""
    return FieldKey(name, kind, meaning, default=default, per=1000, stands=stands)


def _value(name: str, default: int | bool, kind: Whole | Flag, meaning: str) -> FieldKey:
    return FieldKey(name, kind, meaning, default=default)


def _text(name: str, unset: str, meaning: str) -> FieldKey:
    """A key whose empty text is as none."""
    return FieldKey(name, Text(), meaning, unset=unset, stands=("", None))


def _texts(name: str, meaning: str) -> FieldKey:
    return FieldKey(name, Texts(), meaning, default=())


def _claim(name: str, default: str, meaning: str) -> FieldKey:
    return FieldKey(name, Text(), meaning, default=default)


# What DescribeConfigs has, too.
DESCRIBED: Final = (
    _value("socket.request.max.bytes", 100 * _MB, _INT_BYTES, "the largest request"),
    _value("max.connections", MAX_INT, _COUNT, "the most connections; more are refused"),
    _value("max.connections.per.ip", MAX_INT, _COUNT, "the most connections from one address"),
    _time(
        "connections.max.idle.ms",
        600_000,
        Whole(1, MAX_LONG, besides=-1, of="ms"),
        "a connection that is silent for longer is closed; -1: none is",
        (-1, _TEN_YEARS_S),
    ),
    FieldKey(
        "queued.max.request.bytes",
        Whole(1024, MAX_LONG, besides=-1, of="bytes"),
        "while more wait for an answer, none is read; -1: as the default",
        default=_QUEUED_BYTES,
        stands=(-1, _QUEUED_BYTES),
    ),
    _value("unsent.max.bytes", 128 * _MB, _BYTES, "while more answers wait for clients, no fetch begins"),
    _time(
        "stalled.reader.ms",
        60_000,
        _MS,
        "a client that takes nothing of an answer for longer is dropped; for 5 s, where fetches wait for room",
    ),
    _value("cache.bytes", 128 * _MB, _BYTES, "record batches that are kept for consumers"),
    _value(
        "cache.files.bytes",
        0,
        Whole(0, MAX_LONG, of="bytes"),
        "record batches that are kept in files when memory has no room for them; 0: none",
    ),
    _text("cache.files.dir", "the system's for files that are not kept", "the folder of these files, on a near disk"),
    FieldKey(
        "topic.leaders",
        Matching(r"auto|all|[1-9][0-9]{0,4}", "auto, all, or a number of brokers"),
        "how many brokers lead a topic: auto, as many as its load needs; a number, no more than that; all, all of them",
        default="auto",
    ),
    _time("topic.leaders.interval.ms", 30_000, _MS, "the least time between two changes of how many lead a topic"),
    _value("default.replication.factor", 1, Whole(1, 32_767), "of topics that are created without one"),
    _value("delete.topic.enable", True, Flag(), "whether clients may delete topics"),
    _time(
        "log.retention.check.interval.ms",
        60_000,
        _MS,
        "how often the lake is maintained, unless `--no-maintain`; every minute at least, for small files too",
    ),
    _value("group.min.session.timeout.ms", 6_000, _MS, "the shortest session of a member"),
    _value("group.max.session.timeout.ms", 1_800_000, _MS, "the longest session of a member"),
    _value("group.initial.rebalance.delay.ms", 3_000, _MS_0, "how long a new group waits"),
    _value("group.max.size", MAX_INT, _COUNT, "the most members of a group"),
    _value("group.consumer.session.timeout.ms", 45_000, _MS, "the session of a member of the consumer protocol"),
    _value(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        _MS,
        "the longest interval between a member's heartbeats: a broker asks for shorter ones where they cost little",
    ),
    _value(
        "group.consumer.min.session.timeout.ms", 45_000, _MS, "the shortest `consumer.session.timeout.ms` of a group"
    ),
    _value(
        "group.consumer.max.session.timeout.ms", 60_000, _MS, "the longest `consumer.session.timeout.ms` of a group"
    ),
    _value(
        "group.consumer.min.heartbeat.interval.ms", 500, _MS, "the shortest `consumer.heartbeat.interval.ms` of a group"
    ),
    _value(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        _MS,
        "the longest `consumer.heartbeat.interval.ms` of a group",
    ),
    _value("group.consumer.max.size", MAX_INT, _COUNT, "the most members of a group of the type consumer"),
    _value("group.streams.session.timeout.ms", 45_000, _MS, "the session of a member of the streams protocol"),
    _value(
        "group.streams.heartbeat.interval.ms",
        5_000,
        _MS,
        "the longest interval between heartbeats of a member of the streams protocol",
    ),
    _value("group.streams.min.session.timeout.ms", 45_000, _MS, "the shortest `streams.session.timeout.ms` of a group"),
    _value("group.streams.max.session.timeout.ms", 60_000, _MS, "the longest `streams.session.timeout.ms` of a group"),
    _value(
        "group.streams.min.heartbeat.interval.ms", 500, _MS, "the shortest `streams.heartbeat.interval.ms` of a group"
    ),
    _value(
        "group.streams.max.heartbeat.interval.ms", 15_000, _MS, "the longest `streams.heartbeat.interval.ms` of a group"
    ),
    _value("group.streams.max.size", MAX_INT, _COUNT, "the most members of a streams group"),
    _value(
        "group.streams.initial.rebalance.delay.ms",
        3_000,
        Whole(0, MAX_INT),
        "how long a streams group without members waits for more of them, once the first one has joined",
    ),
    _value("group.streams.num.standby.replicas", 0, Whole(0, MAX_INT), "the copies of each state of a streams group"),
    _value("group.streams.max.standby.replicas", 2, Whole(0, MAX_INT), "the most `streams.num.standby.replicas`"),
    FieldKey(
        "group.consumer.assignors",
        Matching(r"uniform|range|uniform,range|range,uniform", "uniform, range, or both, separated by a comma"),
        "the assignors of the consumer protocol; the first one is taken where members ask for none",
        default="uniform,range",
    ),
    FieldKey(
        "group.consumer.migration.policy",
        Matching("disabled|upgrade|downgrade|bidirectional", "disabled, upgrade, downgrade or bidirectional"),
        "whether a group with members becomes one of the type consumer with its first member of that protocol, and a"
        " classic one when its last one goes",
        default="bidirectional",
    ),
    _value(
        "telemetry.max.bytes",
        _MB,
        Whole(1, MAX_INT, of="bytes"),
        "the largest push of a client's metrics, as it is packed",
    ),
    _value("quota.window.num", 11, _COUNT, "the windows that the rates of quotas' metrics are a mean of"),
    _value(
        "quota.window.size.seconds",
        1,
        _COUNT,
        "the length of a window: a client that was silent may take at once what its quota allows in one",
    ),
    _value(
        "controller.quota.window.num", 11, _COUNT, "the windows whose changes of partitions a client may make at once"
    ),
    _value("controller.quota.window.size.seconds", 1, _COUNT, "the length of one of them"),
    _value("sasl.server.max.receive.size", 512 * 1024, _INT_BYTES, "the largest request before a log-in"),
    _time("connections.max.reauth.ms", 0, _MS_0, "how long a log-in lasts; 0: for ever"),
    _time("connection.failed.authentication.delay.ms", 100, _MS_0, "how long the answer to wrong credentials waits"),
    _time("login.timeout.ms", 30_000, _MS, "a connection that has not logged in after so long is closed"),
    _value(
        "login.failures.per.minute",
        1000,
        _COUNT,
        "wrong credentials that one address may send; then its connections are closed for a while",
    ),
)

# Of a listener: with `listener.name.<name>.` before it, of that one alone.
OF_LISTENERS: Final = (
    _text(
        "ssl.keystore.location",
        "",
        "a file with the certificate, those up to its authority, and the private key: PEM, PKCS#12 or JKS; or a folder"
        " with `tls.crt` and `tls.key`, as Kubernetes lays a secret",
    ),
    _text("ssl.keystore.password", "", "of a file that is PKCS#12 or JKS"),
    _text("ssl.keystore.type", "what the file is", "PEM, PKCS12 or JKS"),
    _text("ssl.keystore.certificate.chain", "", "the certificates themselves, as PEM, in place of a file"),
    _text("ssl.keystore.key", "", "their private key, as PEM"),
    _text("ssl.key.password", "", "of the private key, where it is encrypted"),
    _text(
        "ssl.truststore.location",
        "the system's",
        "a file with the authorities that are trusted: PEM, PKCS#12 or JKS; or a folder with `ca.crt`",
    ),
    _text("ssl.truststore.password", "", "of a file that is PKCS#12"),
    _text("ssl.truststore.type", "what the file is", "PEM, PKCS12 or JKS"),
    _text("ssl.truststore.certificates", "", "the authorities themselves, as PEM, in place of a file"),
    _text(
        "ssl.client.auth",
        "none",
        "none, requested or required: certificates of clients; at a listener of SASL_SSL its own setting counts only",
    ),
    _text("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "the versions of TLS"),
    _text("ssl.principal.mapping.rules", "DEFAULT", "what makes a principal of a certificate's subject"),
    _text(
        "ssl.endpoint.identification.algorithm",
        "https",
        "whether brokers check each other's names by their certificates; empty: they do not",
    ),
    _text(
        "sasl.enabled.mechanisms",
        "SCRAM-SHA-256,SCRAM-SHA-512",
        "how clients log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
    ),
)
OTHERS: Final = (
    FieldKey(
        "broker.id",
        Whole(-1, MAX_INT),
        "the broker's id, as `--id`; also `node.id`",
        unset="the lowest free one",
        stands=(-1, None),
    ),
    _text("broker.rack", "", "its rack or zone, as `--rack`"),
    _text("listeners", "PLAINTEXT://127.0.0.1:9092", "NAME://HOST:PORT, separated by commas"),
    _text("advertised.listeners", "listeners", "where clients of each listener are sent"),
    _text("listener.security.protocol.map", "a protocol's name means it", "NAME:PROTOCOL, separated by commas"),
    _text("inter.broker.listener.name", "the first of listeners", "where brokers ask each other"),
    _text("security.inter.broker.protocol", "", "names that listener by its protocol"),
    *OF_LISTENERS,
    _text("super.users", "", "principals that may do everything: User:NAME, separated by semicolons"),
    FieldKey(
        "allow.everyone.if.no.acl.found",
        Flag(),
        "true or false: what no ACL is about",
        unset="true until a listener authenticates",
    ),
    _text("audit.topic", "", "the topic that gets denials and changes of access, too, as lines of JSON"),
    _text("sasl.oauthbearer.jwks.endpoint.url", "", "the public keys of tokens: https, http or file"),
    _texts("sasl.oauthbearer.expected.audience", "tokens are for one of these, separated by commas"),
    _text("sasl.oauthbearer.expected.issuer", "", "tokens are of this issuer"),
    _claim("sasl.oauthbearer.sub.claim.name", "sub", "the claim that names the principal"),
    _claim("sasl.oauthbearer.scope.claim.name", "scope", "the claim that lists scopes"),
    _texts("sasl.oauthbearer.expected.scope", "tokens have all of these scopes, separated by commas"),
    _value("sasl.oauthbearer.clock.skew.seconds", 30, Whole(0, 3600, of="seconds"), "how far clocks may differ"),
    _time(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        Whole(1, MAX_INT, of="ms"),
        "how often the keys are read again",
    ),
)
# {name: key} of all of them; node.id is broker.id's other name.
BROKER_KEYS: Final = {key.name: key for key in (*DESCRIBED, *OTHERS)} | {
    "node.id": replace(OTHERS[0], name="node.id", doc="the broker's id, as `--id`; also `broker.id`")
}


def held(name: str) -> Any:
    """A field of a dataclass that holds the key `name`."""
    return BROKER_KEYS[name].field()
