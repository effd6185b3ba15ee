"""Keys of Kafka's brokers (4.1, and those that earlier ones and other distributions have): what becomes of each here.

A key of a broker's file is one of tidelog's brokers (`broker_keys`), a key of the lake (`LakeConfig.KEYS` and its other
names), or has no meaning here, for the reason that is here. The reasons end the sentence "It
would do nothing: …".
"""

from collections.abc import Mapping
from typing import Final

_NO_REPLICAS = "a lake has no replicas and no leaders of its own; what acks=all promises is what its storage keeps"
_SYNCED = "no flush is left to a timer: every log entry is synced before it counts, and acks=all syncs its segments too"
_WHOLE_FILES = "segments are Parquet files that are written whole and hold their own index"
_ONE_FORMAT = "there is one record format"
_ROLLED = "no segment is rolled by a timer: each append writes its own, and merging is a job"
_ADDRESS = "the lake's address says where records are (--lake)"
_THREADS = "one process uses about one core; --processes runs more of them"
_SOCKETS = "buffers of sockets are the system's"
_WAITING = "requests that wait are woken, and need no purge"
_NO_CONTROLLERS = "there are no controllers: brokers find each other by the lake"
_NO_ZOOKEEPER = "there is no ZooKeeper: brokers find each other by the lake"
_NO_TIERS = "a lake has one tier; to keep topics on an object store, put the lake there"
_NO_SHARES = "share groups are not offered"
_FIXED_KIP_848 = "all else of the consumer protocol (KIP-848) is fixed"
_FIXED_KIP_1071 = "all else of the streams protocol (KIP-1071) is fixed"
_COMPACTION = "compaction is a part of maintenance, which takes the memory and the time that it needs"
_TABLES = "groups and transactions are kept in tables of the lake, not in topics"
_BOUNDED = "the bound is a fixed one here, Kafka's default"
_METRICS = "metrics are Prometheus', at the address of --metrics"
_NO_CLASSES = "brokers are not Java, and load no class"
_NO_POLICY = "there are no policies of topics and configurations; ACLs say which principals create and alter"
_NO_TOKENS = "delegation tokens are not offered"
_NO_KERBEROS = "Kerberos (GSSAPI) is not offered"
_LAKE_USERS = "users are in the lake: 'tidelog user add' makes one"
_OWN_LOGIN = "brokers log in to each other by a user of their own"
_TLS_BY_OPENSSL = "TLS is OpenSSL's, with its own choice of ciphers, for the versions in ssl.enabled.protocols"
_CLIENTS = "brokers connect to brokers only, with times of their own"
_STARTED = "a broker of a lake has nothing to load or to register before it serves"
_FEATURES = "what is offered doesn't depend on a flag"
_MOVES = "partitions move to another broker as soon as theirs stops"
_ENCODED = "no password is kept in a broker's configuration that clients can change"
_PLUGIN = "it belongs to a product of another vendor's, which is not here"
_RESOLVED = "variables of the file are already replaced by their values"


def _each(keys: str, why: str) -> dict[str, str]:
    """{key: why} of keys with spaces between them."""
    return dict.fromkeys(keys.split(), why)


# key -> why it has no meaning here
PASSED_OVER: Final[Mapping[str, str]] = {
    **_each("log.dir log.dirs metadata.log.dir log.dir.failure.timeout.ms", _ADDRESS),
    **_each("num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads", _ADDRESS),
    **_each(
        "alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds", _ADDRESS
    ),
    **_each("num.io.threads num.network.threads background.threads queued.max.requests", _THREADS),
    **_each("socket.send.buffer.bytes socket.receive.buffer.bytes socket.listen.backlog.size", _SOCKETS),
    **_each(
        "fetch.purgatory.purge.interval.requests producer.purgatory.purge.interval.requests"
        " delete.records.purgatory.purge.interval.requests share.fetch.purgatory.purge.interval.requests",
        _WAITING,
    ),
    **_each(
        "process.roles broker.heartbeat.interval.ms broker.session.timeout.ms initial.broker.registration.timeout.ms"
        " controller.listener.names sasl.mechanism.controller.protocol controller.socket.timeout.ms"
        " controller.performance.always.log.threshold.ms controller.performance.sample.period.ms"
        " control.plane.listener.name controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms"
        " metadata.max.idle.interval.ms unclean.leader.election.interval.ms",
        _NO_CONTROLLERS,
    ),
    **_each("broker.id.generation.enable reserved.broker.max.id inter.broker.protocol.version", _NO_ZOOKEEPER),
    **_each(
        "unclean.leader.election.enable auto.leader.rebalance.enable leader.imbalance.check.interval.seconds"
        " leader.imbalance.per.broker.percentage num.replica.fetchers replication.quota.window.num"
        " replication.quota.window.size.seconds offsets.topic.replication.factor"
        " transaction.state.log.replication.factor transaction.state.log.min.isr",
        _NO_REPLICAS,
    ),
    **_each("controlled.shutdown.enable", _MOVES),
    **_each("early.start.listeners server.max.startup.time.ms", _STARTED),
    **_each(
        "log.flush.interval.messages log.flush.interval.ms log.flush.scheduler.interval.ms"
        " log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms",
        _SYNCED,
    ),
    **_each(
        "log.index.interval.bytes log.index.size.max.bytes log.preallocate log.initial.task.delay.ms", _WHOLE_FILES
    ),
    **_each("log.message.downconversion.enable log.message.format.version", _ONE_FORMAT),
    **_each("log.roll.jitter.ms log.roll.jitter.hours", _ROLLED),
    "log.message.timestamp.difference.max.ms": "Kafka 4 dropped it for log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms: set those",
    "log.cleaner.enable": "compaction is a part of maintenance, which cleanup.policy of each topic asks for; "
    "--no-maintain leaves it out",
    **_each(
        "log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.load.factor"
        " log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second log.cleaner.threads",
        _COMPACTION,
    ),
    **_each(
        "offsets.commit.timeout.ms offsets.load.buffer.size offsets.retention.check.interval.ms"
        " offsets.topic.compression.codec offsets.topic.segment.bytes offsets.commit.required.acks"
        " transaction.state.log.load.buffer.size transaction.state.log.num.partitions"
        " transaction.state.log.segment.bytes"
        " transaction.abort.timed.out.transaction.cleanup.interval.ms"
        " transaction.remove.expired.transaction.cleanup.interval.ms producer.id.expiration.check.interval.ms"
        " add.partitions.to.txn.retry.backoff.ms add.partitions.to.txn.retry.backoff.max.ms",
        _TABLES,
    ),
    **_each("group.coordinator.threads group.coordinator.append.linger.ms", _TABLES),
    "transaction.partition.verification.enable": "records of a transaction are always checked against it",
    "transaction.two.phase.commit.enable": "transactions in two phases (KIP-939) are not offered",
    "group.coordinator.rebalance.protocols": "the classic and the consumer protocol are always offered",
    **_each(
        "fetch.max.bytes offset.metadata.max.bytes max.incremental.fetch.session.cache.slots"
        " max.request.partition.size.limit",
        _BOUNDED,
    ),
    "max.connection.creation.rate": "the quota connection_creation_rate bounds it for each address",
    "max.connections.per.ip.overrides": "max.connections.per.ip counts for all addresses",
    **_each(
        "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms kafka.metrics.reporters"
        " kafka.metrics.polling.interval.secs auto.include.jmx.reporter",
        _METRICS,
    ),
    **_each(
        "replica.selector.class client.quota.callback.class security.providers principal.builder.class"
        " sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class"
        " sasl.server.callback.handler.class ssl.engine.factory.class connection.failed.callback.class",
        _NO_CLASSES,
    ),
    "authorizer.class.name": "ACLs of the lake are always in force, as by Kafka's StandardAuthorizer",
    **_each("alter.config.policy.class.name create.topic.policy.class.name", _NO_POLICY),
    **_each(
        "delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.master.key"
        " delegation.token.max.lifetime.ms delegation.token.secret.key",
        _NO_TOKENS,
    ),
    "sasl.jaas.config": _LAKE_USERS,
    "sasl.mechanism.inter.broker.protocol": _OWN_LOGIN,
    **_each(
        "sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds"
        " sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter"
        " sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.token.endpoint.url"
        " sasl.oauthbearer.scope sasl.oauthbearer.jwt.retriever.class",
        _OWN_LOGIN,
    ),
    "sasl.oauthbearer.jwt.validator.class": "tokens are checked as by Kafka's DefaultJwtValidator",
    **_each(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "keys that can't be had are asked for again every 10 s, and those of before count meanwhile",
    ),
    **_each(
        "ssl.cipher.suites ssl.protocol ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm"
        " ssl.secure.random.implementation",
        _TLS_BY_OPENSSL,
    ),
    **_each(
        "ssl.allow.dn.changes ssl.allow.san.changes", "a new certificate counts, whatever it names, and the log says so"
    ),
    **_each(
        "request.timeout.ms socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms"
        " connections.max.idle.ms.inter.broker",
        _CLIENTS,
    ),
    **_each("unstable.api.versions.enable unstable.feature.versions.enable", _FEATURES),
    # A number of Kafka's defaults that would cost a lake its speed: each is a table of its own.
    "offsets.topic.num.partitions": "one table holds the offsets of many groups, and Kafka's 50 would only be slower; "
    "'tidelog lake alter' sets another number, before the first group commits",
}

# beginning of keys -> why they have no meaning here
PASSED_OVER_BEGINNINGS: Final[Mapping[str, str]] = {
    "zookeeper.": _NO_ZOOKEEPER,
    "controller.quorum.": _NO_CONTROLLERS,
    "metadata.log.": _NO_CONTROLLERS,
    "metadata.max.": _NO_CONTROLLERS,
    "internal.metadata.": _NO_CONTROLLERS,
    "migration.": _NO_ZOOKEEPER,
    "replica.": _NO_REPLICAS,
    "follower.": _NO_REPLICAS,
    "leader.": _NO_REPLICAS,
    "log.local.": _NO_TIERS,
    "remote.": _NO_TIERS,
    "rlmm.config.": _NO_TIERS,
    "rsm.config.": _NO_TIERS,
    "group.share.": _NO_SHARES,
    "share.coordinator.": _NO_SHARES,
    "group.consumer.": _FIXED_KIP_848,
    "group.streams.": _FIXED_KIP_1071,
    "password.encoder.": _ENCODED,
    "sasl.kerberos.": _NO_KERBEROS,
    "sasl.oauthbearer.assertion.": _OWN_LOGIN,
    "sasl.oauthbearer.client.credentials.": _OWN_LOGIN,
    "config.providers": _RESOLVED,
    "confluent.": _PLUGIN,
    "io.confluent.": _PLUGIN,
    "kafka.rest.": _PLUGIN,
    "rest.servlet.": _PLUGIN,
    "ldap.": _PLUGIN,
    "event.logger.": _PLUGIN,
    "cruise.control.": _PLUGIN,
    "strimzi.": _PLUGIN,
    "oauth.": _PLUGIN,
    "opa.authorizer.": _PLUGIN,
    "client.quota.callback.static.": _PLUGIN,
}
