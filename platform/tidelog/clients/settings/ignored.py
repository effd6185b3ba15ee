"""Configuration keys that clients of Kafka know and that do nothing here: ignored with a warning, or refused.

A key is ignored where a program works as before without it, and refused where its author counts on something that
would not happen. Source: CONFIGURATION.md of librdkafka 2.16, confluent-kafka's own keys, and Kafka 4's
`ProducerConfig` and `ConsumerConfig`.
"""

from collections.abc import Mapping
from typing import Final

_NO_CONNECTIONS = "tidelog's own clients connect to no broker: each reads and writes the lake's storage itself"
_NO_METADATA = "a topic's log tells each client what there is when it reads it: there is no cache of metadata"
_LOGGING = "what a client has to say goes to Python's logging (`logger`, else `tidelog.clients`), by that one's levels"
_NO_METRICS = "a client reports its statistics by `stats_cb`"
NO_CREDENTIALS: Final = (
    "a client signs in to the lake's storage, not to brokers, and encryption is the storage's too: give the store's "
    "own credentials and certificates (`storage.options`, or the environment) and leave this out"
)

_IGNORED_BY_REASON: Final[Mapping[str, tuple[str, ...]]] = {
    _NO_CONNECTIONS: (
        "api.version.fallback.ms", "api.version.request", "api.version.request.timeout.ms", "broker.address.family",
        "broker.address.ttl", "broker.version.fallback", "builtin.features", "client.dns.lookup",
        "connections.max.idle.ms", "coordinator.query.interval.ms", "fetch.queue.backoff.ms",
        "message.copy.max.bytes", "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy",
        "receive.buffer.bytes", "receive.message.max.bytes", "reconnect.backoff.jitter.ms",
        "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "send.buffer.bytes",
        "socket.blocking.max.ms", "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable", "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes", "socket.timeout.ms", "internal.termination.signal", "enable.random.seed",
        "queue.buffering.backpressure.threshold", "throttle_cb",
    ),
    _NO_METADATA: (
        "metadata.max.age.ms", "metadata.max.idle.ms", "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.cnt", "topic.metadata.refresh.fast.interval.ms", "topic.metadata.refresh.sparse",
    ),
    _LOGGING: (
        "debug", "enabled_events", "log.connection.close", "log.queue", "log.thread.name", "log_level",
    ),
    _NO_METRICS: (
        "auto.include.jmx.reporter", "enable.metrics.push", "metric.reporters", "metrics.num.samples",
        "metrics.recording.level", "metrics.sample.window.ms",
    ),
    "there are no share groups": ("share.acknowledgement.mode",),
    "every read checks checksums, whatever it says": ("check.crcs",),
    "members are assigned partitions without regard to racks, and reads have no nearest replica": ("client.rack",),
    "the group's protocol is always that of consumers": ("group.protocol.type",),
    "levels of compression are the topic's (`compression.zstd.level` ...)": (
        "compression.gzip.level", "compression.level", "compression.lz4.level", "compression.zstd.level",
    ),
    "keyless records stay with one partition for one batch": (
        "partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms",
        "sticky.partitioning.linger.ms",
    ),
    "every delivery report has the offset": ("produce.offset.report",),
    "produce() never waits: it raises BufferError while the queue is full": ("max.block.ms",),
    "calls have their own `timeout`": ("default.api.timeout.ms",),
    "a pattern never matches internal topics": ("exclude.internal.topics",),
    "offsets are kept by the group": ("offset.store.path", "offset.store.sync.interval.ms"),
    "there is no consume callback": ("consume.callback.max.messages",),
}  # fmt: skip

_REFUSED_BY_REASON: Final[Mapping[str, tuple[str, ...]]] = {
    NO_CREDENTIALS: (
        "enable.sasl.oauthbearer.unsecure.jwt", "enable.ssl.certificate.verification", "https.ca.location",
        "https.ca.pem", "oauth_cb", "oauthbearer_token_refresh_cb", "sasl.client.callback.handler.class",
        "sasl.jaas.config", "sasl.kerberos.keytab", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal", "sasl.kerberos.service.name", "sasl.login.callback.handler.class",
        "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud", "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss", "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds", "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file", "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type", "sasl.oauthbearer.metadata.authentication.type", "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope", "sasl.oauthbearer.sub.claim.name", "sasl.oauthbearer.token.endpoint.url",
        "sasl.password", "sasl.username", "security.providers", "ssl.ca.certificate.stores", "ssl.ca.location",
        "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.certificate.verify_cb",
        "ssl.cipher.suites", "ssl.crl.location", "ssl.curves.list", "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm", "ssl.engine.id", "ssl.engine.location", "ssl.key.location",
        "ssl.key.password", "ssl.key.pem", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
        "ssl.protocol", "ssl.providers", "ssl.sigalgs.list", "ssl.truststore.location", "ssl.truststore.password",
        "ssl.truststore.type", "ssl_ca", "ssl_certificate", "ssl_engine_callback_data", "ssl_key",
    ),
    "it has no value that a dict can hold": (
        "background_event_cb", "closesocket_cb", "connect_cb", "default_topic_conf", "msg_order_cmp", "opaque",
        "open_cb", "resolve_cb", "socket_cb",
    ),
    "a client logs to `logger`: give that": ("log_cb",),
    "poll and consume return the records: there is no callback for them": ("consume_cb",),
    "give on_assign, on_revoke and on_lost to subscribe()": ("rebalance_cb",),
    "it is called `on_commit` here, as in confluent-kafka": ("offset_commit_cb",),
    "give the function as `partitioner`": ("partitioner_cb", "partitioner.class"),
    "nothing is loaded into a client": ("config.providers", "interceptor.classes", "interceptors",
                                        "plugin.library.paths"),
    "give `partitioner` a function that does not look at the keys": ("partitioner.ignore.keys",),
    "subscribe to a pattern that leaves these topics out": ("topic.blacklist",),
}  # fmt: skip

_SERDES: Final[Mapping[str, str]] = {
    f"{part}.{what}{end}": f"it is a key of {client}"
    for what, client in (("serializer", "SerializingProducer"), ("deserializer", "DeserializingConsumer"))
    for part in ("key", "value")
    for end in ("", ".builder")
}

IGNORED: Final[Mapping[str, str]] = {name: reason for reason, names in _IGNORED_BY_REASON.items() for name in names}
"""Key -> why it does nothing."""

REFUSED: Final[Mapping[str, str]] = {
    name: reason for reason, names in _REFUSED_BY_REASON.items() for name in names
} | dict(_SERDES)
"""Key -> why it is refused, by every client."""

REFUSED_FOR_PRODUCERS: Final[Mapping[str, str]] = {
    "enable.gapless.guarantee": "a record that fails does not stop the ones after it; look at the delivery reports",
}
"""Key -> why a producer refuses it; consumers and admin clients ignore it, as in librdkafka."""
