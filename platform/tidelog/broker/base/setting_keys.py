"""Settings of brokers: each one's name, values, default and meaning, declared here once.

Files, the environment, DescribeConfigs, `tidelog broker check-config` and docs/brokers.md go by these declarations.
"""

from dataclasses import dataclass
from typing import Any, Final

from tidelog.broker.base.settings import BrokerSettings
from tidelog.log.base.typed_values import MAX_INT, MAX_LONG, Flag, Whole

PREFIX: Final = "TIDELOG_BROKER_"
LISTENER_PREFIX: Final = "listener.name."


def variable_of(name: str) -> str:
    """A setting's variable: TIDELOG_BROKER_MAX_CONNECTIONS for max.connections."""
    return PREFIX + name.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class ValueSetting:
    """A number or a flag: its name, where `BrokerSettings` has it ("" for itself), its values, and their unit there.

    `per`: how many of the setting's units make one of the field's. `for_minus_one`: what the field has for -1.
    """

    name: str
    group: str
    field: str
    kind: Whole | Flag
    meaning: str
    per: int = 1
    for_minus_one: float | None = None

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return variable_of(self.name)

    def default(self) -> str:
        """Its value where nothing is set, as a text."""
        return self.text_of(BrokerSettings({}))

    def text_of(self, settings: BrokerSettings) -> str:
        """Its value of these settings, as a text."""
        held: Any = getattr(settings, self.group) if self.group else settings
        value = getattr(held, self.field)
        return self.kind.text(value) if isinstance(self.kind, Flag) else self.kind.text(round(value * self.per))

    def field_value(self, value: int | bool) -> Any:
        """What the field has for a parsed value."""
        if value == -1 and self.for_minus_one is not None:
            return self.for_minus_one
        return value if self.per == 1 else value / self.per


@dataclass(frozen=True, slots=True)
class TextSetting:
    """A setting that is a text: its name, its default in words, and what it means."""

    name: str
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return variable_of(self.name)


_BYTES = Whole(1024, MAX_LONG, of="bytes")
_INT_BYTES = Whole(1024, MAX_INT, of="bytes")
_MS = Whole(1, MAX_LONG, of="ms")
_MS_0 = Whole(0, MAX_INT, of="ms")
_COUNT = Whole(1, MAX_INT)
# What stands for ever, in seconds: clocks of event loops take no infinite times.
_TEN_YEARS_S: Final = 315_360_000.0


def _bound(name: str, field: str, kind: Whole, meaning: str, per: int = 1, minus: float | None = None) -> ValueSetting:
    return ValueSetting(name, "bounds", field, kind, meaning, per, minus)


def _group(name: str, field: str, kind: Whole, meaning: str) -> ValueSetting:
    return ValueSetting(name, "groups", field, kind, meaning)


def _quota(name: str, field: str, kind: Whole, meaning: str) -> ValueSetting:
    return ValueSetting(name, "quotas", field, kind, meaning)


def _sasl(name: str, field: str, kind: Whole, meaning: str, per: int = 1) -> ValueSetting:
    return ValueSetting(name, "sasl", field, kind, meaning, per)


SETTINGS: Final = (
    _bound("socket.request.max.bytes", "request_max_bytes", _INT_BYTES, "the largest request"),
    _bound("max.connections", "max_connections", _COUNT, "the most connections; more are refused"),
    _bound("max.connections.per.ip", "max_connections_per_ip", _COUNT, "the most connections from one address"),
    _bound(
        "connections.max.idle.ms",
        "idle_s",
        Whole(1, MAX_LONG, besides=-1, of="ms"),
        "a connection that is silent for longer is closed; -1: none is",
        1000,
        _TEN_YEARS_S,
    ),
    _bound(
        "queued.max.request.bytes",
        "queued_max_bytes",
        Whole(1024, MAX_LONG, besides=-1, of="bytes"),
        "while more wait for an answer, none is read; -1: as the default",
        1,
        BrokerSettings({}).bounds.queued_max_bytes,
    ),
    _bound("unsent.max.bytes", "unsent_max_bytes", _BYTES, "while more answers wait for clients, no fetch begins"),
    _bound(
        "stalled.reader.ms",
        "stalled_s",
        _MS,
        "a client that takes nothing of an answer for longer is dropped; for 5 s, where fetches wait for room",
        1000,
    ),
    ValueSetting("cache.bytes", "", "cache_bytes", _BYTES, "record batches that are kept for consumers"),
    ValueSetting(
        "default.replication.factor",
        "",
        "default_replication_factor",
        Whole(1, 32_767),
        "of topics that are created without one",
    ),
    ValueSetting("delete.topic.enable", "", "deletes_topics", Flag(), "whether clients may delete topics"),
    ValueSetting(
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

# Of a listener: with `listener.name.<name>.` before it, of that one alone.
OF_LISTENERS: Final = (
    TextSetting(
        "ssl.keystore.location",
        "",
        "a file with the certificate, those up to its authority, and the private key: PEM, PKCS#12 or JKS",
    ),
    TextSetting("ssl.keystore.password", "", "of a file that is PKCS#12 or JKS"),
    TextSetting("ssl.keystore.type", "what the file is", "PEM, PKCS12 or JKS"),
    TextSetting("ssl.keystore.certificate.chain", "", "the certificates themselves, as PEM, in place of a file"),
    TextSetting("ssl.keystore.key", "", "their private key, as PEM"),
    TextSetting("ssl.key.password", "", "of the private key, where it is encrypted"),
    TextSetting(
        "ssl.truststore.location", "the system's", "a file with the authorities that are trusted: PEM, PKCS#12 or JKS"
    ),
    TextSetting("ssl.truststore.password", "", "of a file that is PKCS#12"),
    TextSetting("ssl.truststore.type", "what the file is", "PEM, PKCS12 or JKS"),
    TextSetting("ssl.truststore.certificates", "", "the authorities themselves, as PEM, in place of a file"),
    TextSetting(
        "ssl.client.auth",
        "none",
        "none, requested or required: certificates of clients; at a listener of SASL_SSL its own setting counts only",
    ),
    TextSetting("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "the versions of TLS"),
    TextSetting("ssl.principal.mapping.rules", "DEFAULT", "what makes a principal of a certificate's subject"),
    TextSetting(
        "ssl.endpoint.identification.algorithm",
        "https",
        "whether brokers check each other's names by their certificates; empty: they do not",
    ),
    TextSetting(
        "sasl.enabled.mechanisms",
        "SCRAM-SHA-256,SCRAM-SHA-512",
        "how clients log in: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
    ),
)
OF_BROKERS: Final = (
    TextSetting("broker.id", "the lowest free one", "the broker's id, as `--id`; also `node.id`"),
    TextSetting("broker.rack", "", "its rack or zone, as `--rack`"),
    TextSetting("listeners", "PLAINTEXT://127.0.0.1:9092", "NAME://HOST:PORT, separated by commas"),
    TextSetting("advertised.listeners", "listeners", "where clients of each listener are sent"),
    TextSetting("listener.security.protocol.map", "a protocol's name means it", "NAME:PROTOCOL, separated by commas"),
    TextSetting("inter.broker.listener.name", "the first of listeners", "where brokers ask each other"),
    TextSetting("security.inter.broker.protocol", "", "names that listener by its protocol"),
    *OF_LISTENERS,
    TextSetting("super.users", "", "principals that may do everything: User:NAME, separated by semicolons"),
    TextSetting(
        "allow.everyone.if.no.acl.found", "true until a listener authenticates", "true or false: what no ACL is about"
    ),
    TextSetting("audit.topic", "", "the topic that gets denials and changes of access, too, as lines of JSON"),
    TextSetting("sasl.oauthbearer.jwks.endpoint.url", "", "the public keys of tokens: https, http or file"),
    TextSetting("sasl.oauthbearer.expected.audience", "", "tokens are for one of these, separated by commas"),
    TextSetting("sasl.oauthbearer.expected.issuer", "", "tokens are of this issuer"),
    TextSetting("sasl.oauthbearer.sub.claim.name", "sub", "the claim that names the principal"),
    TextSetting("sasl.oauthbearer.scope.claim.name", "scope", "the claim that lists scopes"),
    TextSetting("sasl.oauthbearer.expected.scope", "", "tokens have all of these scopes, separated by commas"),
    TextSetting("sasl.oauthbearer.clock.skew.seconds", "30", "how far clocks may differ"),
    TextSetting("sasl.oauthbearer.jwks.endpoint.refresh.ms", "3600000", "how often the keys are read again"),
)
# {name: setting} of all of them; node.id is broker.id's other name.
ALL_SETTINGS: Final = {one.name: one for one in (*SETTINGS, *OF_BROKERS)} | {
    "node.id": TextSetting("node.id", "", "the broker's id, as `--id`; also `broker.id`")
}
SECRETS: Final = frozenset({"ssl.keystore.password", "ssl.keystore.key", "ssl.key.password", "ssl.truststore.password"})
