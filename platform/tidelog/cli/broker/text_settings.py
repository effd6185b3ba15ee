"""Settings of brokers that are no numbers: their names and meanings, and the keys of Kafka's that are not read."""

from dataclasses import dataclass
from typing import Final

from tidelog.cli.broker.environment import variable_of


@dataclass(frozen=True, slots=True)
class TextSetting:
    """A setting: its name, its default in words, and what it means."""

    name: str
    default: str
    meaning: str

    @property
    def variable(self) -> str:
        """Its variable in the environment."""
        return variable_of(self.name)


# Of a listener: with `listener.name.<name>.` before it, of that one alone.
OF_LISTENERS: Final = (
    TextSetting("ssl.keystore.location", "", "a PEM file: the certificate, those up to its authority, the private key"),
    TextSetting("ssl.keystore.type", "PEM", "PEM"),
    TextSetting("ssl.key.password", "", "of the private key, where it is encrypted"),
    TextSetting("ssl.truststore.location", "the system's", "a PEM file: the authorities that are trusted"),
    TextSetting("ssl.truststore.type", "PEM", "PEM"),
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
LISTENER_PREFIX: Final = "listener.name."

_PEM_FILE: Final = "Put it into a PEM file, and name that as ssl.{}.location."
# Keys of Kafka's brokers that another one stands for, or none.
NOT_READ: Final = {
    "security.inter.broker.protocol": "Give inter.broker.listener.name: the listener's protocol counts.",
    "sasl.mechanism.inter.broker.protocol": "Leave it out: brokers log in to each other by a user of their own.",
    "authorizer.class.name": "Leave it out: ACLs are always in force.",
    "ssl.protocol": "Give ssl.enabled.protocols.",
    "ssl.cipher.suites": "Leave it out: OpenSSL chooses.",
    "ssl.keystore.password": "Leave it out: a PEM file has none. ssl.key.password is the private key's.",
    "ssl.truststore.password": "Leave it out: a PEM file has none.",
    "ssl.keystore.key": _PEM_FILE.format("keystore"),
    "ssl.keystore.certificate.chain": _PEM_FILE.format("keystore"),
    "ssl.truststore.certificates": _PEM_FILE.format("truststore"),
    "sasl.jaas.config": "Leave it out: users are in the lake, 'tidelog user add' makes one.",
    "log.dirs": "Leave it out: --lake says where records are.",
    "log.dir": "Leave it out: --lake says where records are.",
    "process.roles": "Leave it out: there are no controllers.",
    "controller.quorum.voters": "Leave it out: there are no controllers.",
    "controller.listener.names": "Leave it out: there are no controllers.",
    "zookeeper.connect": "Leave it out: brokers find each other by the lake.",
}
