"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: in every version, over topics, the lake, brokers, groups."""

import pytest
from kio.schema.errors import ErrorCode
from support.broker_requests import Requests

from tidelog.broker.base.settings import Bounds, GroupSettings
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def versions(key):
    return range(OFFERED[key].first, OFFERED[key].last + 1)


def describe(requests, kind, name, version=4, keys=None, **asked):
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    (found,) = requests.ask(ApiKey.DESCRIBE_CONFIGS, version, {"resources": [resource], **asked}).results
    assert (found.resource_type, found.resource_name) == (kind, name)
    return found


def configs(found):
    return {one.name: one for one in found.configs}


def alter(requests, kind, name, *changes, version=1, validate_only=False):
    keys = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    asked = {"resources": [{"resource_type": kind, "resource_name": name, "configs": keys}]}
    (told,) = requests.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, version, {**asked, "validate_only": validate_only}
    ).responses
    return told


# --- DescribeConfigs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CONFIGS))
def test_a_topic_has_all_keys_with_value_source_and_synonyms(lake, requests, version):
    lake.alter_config({"log.retention.ms": "7000", "log.retention.bytes": "9"})
    lake.create_topic("t", config={"retention.ms": "5000"})
    found = configs(describe(requests, TOPIC, "t", version, include_synonyms=True, include_documentation=True))
    assert sorted(found) == sorted(TopicConfig.KEYS)
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("5000", 1)
    assert [(s.name, s.value, s.source) for s in found["retention.ms"].synonyms] == [
        ("retention.ms", "5000", 1),
        ("log.retention.ms", "7000", 3),
        ("log.retention.ms", "604800000", 5),
    ]
    assert (found["retention.bytes"].value, found["retention.bytes"].config_source) == ("9", 3)
    assert (found["cleanup.policy"].value, found["cleanup.policy"].config_source) == ("delete", 5)
    assert not any(one.read_only or one.is_sensitive for one in found.values())
    if version >= 3:
        kinds = {name: found[name].config_type for name in found}
        assert kinds["retention.ms"] == 5
        assert kinds["max.message.bytes"] == 3
        assert kinds["cleanup.policy"] == 7
        assert kinds["min.cleanable.dirty.ratio"] == 6
        assert kinds["compression.type"] == 2
        assert found["retention.ms"].documentation == TopicConfig.retention_ms.doc


def test_only_what_is_asked_for_is_told(lake, requests):
    lake.create_topic("t")
    found = configs(describe(requests, TOPIC, "t", keys=["retention.ms", "no.such.key"]))
    assert list(found) == ["retention.ms"]
    assert (found["retention.ms"].synonyms, found["retention.ms"].documentation) == ((), None)
    assert len(configs(describe(requests, TOPIC, "t", keys=[]))) == len(TopicConfig.KEYS)


def test_a_broker_has_the_lakes_keys_and_what_it_was_started_with(lake):
    lake.alter_config({"num.partitions": "6"})
    with Requests(lake, rack="r1", bounds=Bounds(max_connections=7)) as requests:
        found = configs(describe(requests, BROKER, "1", include_synonyms=True))
    assert set(found) > set(LakeConfig.KEYS)
    assert (found["num.partitions"].value, found["num.partitions"].config_source) == ("6", 3)
    assert found["num.partitions"].read_only is False
    for key in ("num.partitions", "log.retention.ms"):
        assert {synonym.name for synonym in found[key].synonyms} == {key}
    assert (found["max.connections"].value, found["max.connections"].config_source) == ("7", 4)
    assert found["max.connections"].read_only is True
    assert [(s.value, s.source) for s in found["max.connections"].synonyms] == [("7", 4), ("2147483647", 5)]
    assert (found["socket.request.max.bytes"].value, found["socket.request.max.bytes"].config_source) == (
        "104857600",
        5,
    )
    assert found["broker.rack"].value == "r1"
    assert found["advertised.listeners"].value == "PLAINTEXT://127.0.0.1:9092"
    assert found["log.dirs"].value == lake.uri
    assert found["connections.max.idle.ms"].value == "600000"
    assert found["delete.topic.enable"].value == "true"


def test_the_cluster_wide_default_is_what_was_set(lake, requests):
    assert configs(describe(requests, BROKER, "")) == {}
    lake.alter_config({"num.partitions": "6"})
    assert {name: one.value for name, one in configs(describe(requests, BROKER, "")).items()} == {"num.partitions": "6"}


def test_a_group_that_is_not_there_has_what_its_broker_was_started_with(lake):
    with Requests(lake, groups=GroupSettings(consumer_session_timeout_ms=50_000)) as requests:
        found = configs(describe(requests, GROUP, "g", include_synonyms=True))
    values = {name: (one.value, one.config_source) for name, one in found.items() if name.startswith("consumer.")}
    assert values == {
        "consumer.heartbeat.interval.ms": ("5000", 4),
        "consumer.session.timeout.ms": ("50000", 4),
    }
    (first, last) = found["consumer.session.timeout.ms"].synonyms
    assert (first.name, first.value, first.source) == ("group.consumer.session.timeout.ms", "50000", 4)
    assert (last.value, last.source) == ("45000", 5)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", "unknown_topic_or_partition"),
        (TOPIC, "bad name", "invalid_topic_exception"),
        (TOPIC, "", "invalid_topic_exception"),
        (BROKER, "2", "invalid_request"),
        (BROKER, "one", "invalid_request"),
        (BROKER, "²", "invalid_request"),
        (GROUP, "", "invalid_request"),
        (BROKER_LOGGER, "1", "invalid_request"),
        (99, "x", "invalid_request"),
    ],
)
def test_what_has_no_configuration_says_why(lake, requests, kind, name, error):
    lake.create_topic("t")
    found = describe(requests, kind, name)
    assert (found.error_code.name, found.configs) == (error, ())
    assert found.error_message
    changed = alter(requests, kind, name, ("retention.ms", SET, "1"))
    assert (changed.error_code.name, bool(changed.error_message)) == (error, True)


def test_one_wrong_resource_spoils_no_other(lake, requests):
    lake.create_topic("t")
    asked = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": None} for name in ("x", "t")]
    wrong, right = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": asked}).results
    assert (wrong.error_code, right.error_code) == (ErrorCode.unknown_topic_or_partition, ErrorCode.none)


# --- IncrementalAlterConfigs -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.INCREMENTAL_ALTER_CONFIGS))
def test_keys_are_set_reset_appended_and_subtracted(lake, requests, version):
    lake.create_topic("t", config={"retention.ms": "5", "segment.bytes": "100"})
    requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}]})
    changes = [
        ("retention.ms", SET, "6"),
        ("segment.bytes", DELETE, None),
        ("cleanup.policy", APPEND, "compact"),
    ]
    assert alter(requests, TOPIC, "t", *changes, version=version).error_code is ErrorCode.none
    assert lake.topic_config("t").overrides == {"cleanup.policy": "delete,compact", "retention.ms": "6"}
    assert requests.broker._topics._followed["t"].state.overrides["retention.ms"] == "6"
    assert alter(requests, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete"), version=version).error_code.value == 0
    assert lake.topic_config("t").overrides["cleanup.policy"] == "compact"


@pytest.mark.parametrize("key", sorted([*TopicConfig.KEYS, *TopicConfig.REFUSED, *TopicConfig.ALIASES]))
def test_every_key_of_kafka_can_be_reset(lake, requests, key):
    """MirrorMaker resets all that have their defaults at its source: one that were refused would keep all others."""
    lake.create_topic("t", config={"segment.bytes": "100"})
    changes = [(key, DELETE, None), *([("retention.ms", SET, "6")] if key != "retention.ms" else [])]
    assert alter(requests, TOPIC, "t", *changes).error_code is ErrorCode.none
    overrides = lake.topic_config("t").overrides
    assert overrides.get("retention.ms") == (None if key == "retention.ms" else "6")
    assert key not in overrides


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("retention.ms", SET, "soon"), "invalid_config"),
        (("retention.ms", SET, None), "invalid_request"),
        (("retention.ms", APPEND, "5"), "invalid_config"),
        (("retention.ms", 4, "5"), "invalid_request"),
        (("retention.ms", -1, "5"), "invalid_request"),
        (("no.such.key", SET, "5"), "invalid_config"),
        (("no.such.key", DELETE, None), "invalid_config"),
        (("flush.ms", SET, "5"), "invalid_config"),
        (("cleanup.policy", APPEND, "shred"), "invalid_config"),
        (("min.compaction.lag.ms", SET, str(2**63)), "invalid_config"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_a_wrong_change_changes_nothing(lake, requests, change, error, validate_only):
    lake.create_topic("t", config={"segment.bytes": "100"})
    told = alter(requests, TOPIC, "t", ("segment.bytes", DELETE, None), change, validate_only=validate_only)
    assert (told.error_code.name, bool(told.error_message)) == (error, True)
    assert lake.topic_config("t").overrides == {"segment.bytes": "100"}


def test_a_key_or_a_resource_that_is_named_twice_is_refused(lake, requests):
    lake.create_topic("t")
    told = alter(requests, TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    assert told.error_code is ErrorCode.invalid_request
    change = {"configs": [{"name": "retention.ms", "config_operation": SET, "value": "1"}]}
    asked = [{"resource_type": TOPIC, "resource_name": "t", **change}] * 2
    answers = requests.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": asked}).responses
    assert [one.error_code for one in answers] == [ErrorCode.invalid_request]
    assert lake.topic_config("t").overrides == {}


def test_what_is_only_validated_stays(lake, requests):
    lake.create_topic("t")
    assert alter(requests, TOPIC, "t", ("retention.ms", SET, "1"), validate_only=True).error_code is ErrorCode.none
    assert alter(requests, BROKER, "", ("num.partitions", SET, "3"), validate_only=True).error_code is ErrorCode.none
    assert (lake.topic_config("t").overrides, lake.reload_config().overrides) == ({}, {})


def test_the_lake_is_changed_as_the_default_of_all_brokers(lake, requests):
    assert alter(requests, BROKER, "", ("num.partitions", SET, "3")).error_code is ErrorCode.none
    assert lake.reload_config().num_partitions == 3
    assert alter(requests, BROKER, "", ("num.partitions", SET, "0")).error_code is ErrorCode.invalid_config
    assert alter(requests, BROKER, "", ("num.partitions", DELETE, None)).error_code is ErrorCode.none
    assert lake.reload_config().overrides == {}


@pytest.mark.parametrize(
    ("name", "key", "error", "words"),
    [
        ("1", "num.partitions", "invalid_request", "--entity-default"),
        ("1", "listeners", "invalid_config", "when it is started"),
        ("", "listeners", "invalid_config", "when it is started"),
        ("", "access.root", "invalid_config", "with the store's credentials"),
        ("", "no.such.key", "invalid_config", "Unknown lake configuration"),
    ],
)
def test_what_a_broker_can_not_change_says_where_it_can(requests, name, key, error, words):
    told = alter(requests, BROKER, name, (key, SET, "1"))
    assert (told.error_code.name, words in told.error_message) == (error, True)


_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@pytest.mark.parametrize("key", sorted([*LakeConfig.KEYS.keys() - {"access.root"}, *LakeConfig.ALIASES, *_THROTTLES]))
def test_every_key_can_be_reset_at_a_single_broker_where_none_is_set(lake, requests, key):
    """As kafka-reassign-partitions does when it is done: what is set for all brokers stays."""
    lake.alter_config({"num.partitions": "6", "log.retention.ms": "7000"})
    before = lake.reload_config().overrides
    assert alter(requests, BROKER, "1", (key, DELETE, None)).error_code is ErrorCode.none
    assert lake.reload_config().overrides == before


@pytest.mark.parametrize(
    ("name", "keys", "error"),
    [
        ("1", {"num.partitions": DELETE, "log.retention.ms": SET}, "invalid_request"),
        ("1", {"num.partitions": APPEND}, "invalid_request"),
        ("1", {"listeners": DELETE}, "invalid_config"),
        ("1", {"access.root": DELETE}, "invalid_config"),
        ("1", {"no.such.key": DELETE}, "invalid_config"),
        ("2", {"num.partitions": DELETE}, "invalid_request"),
        ("one", {"num.partitions": DELETE}, "invalid_request"),
    ],
)
def test_nothing_else_is_done_at_a_single_broker(lake, requests, name, keys, error):
    lake.alter_config({"num.partitions": "6"})
    told = alter(requests, BROKER, name, *((key, what, None if what == DELETE else "1") for key, what in keys.items()))
    assert (told.error_code.name, bool(told.error_message)) == (error, True)
    assert lake.reload_config().overrides == {"num.partitions": "6"}


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_CONFIGS))
def test_a_single_brokers_configuration_is_replaced_by_nothing_alone(lake, requests, version):
    lake.alter_config({"num.partitions": "6"})

    def replaced(*configs):
        asked = [{"resource_type": BROKER, "resource_name": "1", "configs": configs}]
        (told,) = requests.ask(ApiKey.ALTER_CONFIGS, version, {"resources": asked, "validate_only": False}).responses
        return told.error_code.name

    assert replaced() == "none"
    assert replaced({"name": "num.partitions", "value": "3"}) == "invalid_request"
    assert lake.reload_config().overrides == {"num.partitions": "6"}


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_a_group_is_configured_before_it_is_there(requests):
    def own():
        return {
            name: one.value for name, one in configs(describe(requests, GROUP, "g")).items() if one.config_source == 8
        }

    assert alter(requests, GROUP, "g", (SESSION, SET, "50000"), validate_only=True).error_code is ErrorCode.none
    assert own() == {}
    assert alter(requests, GROUP, "g", (SESSION, SET, "50000"), (HEARTBEAT, SET, "900")).error_code is ErrorCode.none
    assert own() == {SESSION: "50000", HEARTBEAT: "900"}
    assert alter(requests, GROUP, "g", (SESSION, DELETE, None)).error_code is ErrorCode.none
    assert own() == {HEARTBEAT: "900"}
    replaced = {"resource_type": GROUP, "resource_name": "g", "configs": [{"name": SESSION, "value": "46000"}]}
    (told,) = requests.ask(ApiKey.ALTER_CONFIGS, 2, {"resources": [replaced], "validate_only": False}).responses
    assert (told.error_code, own()) == (ErrorCode.none, {SESSION: "46000"})
    assert requests.ask(ApiKey.LIST_GROUPS, 5, {}).groups == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((SESSION, SET, "44999"), "greater than or equal to group.consumer.min.session.timeout.ms"),
        ((SESSION, SET, "60001"), "less than or equal to group.consumer.max.session.timeout.ms"),
        ((HEARTBEAT, SET, "499"), "greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        ((HEARTBEAT, SET, "15001"), "less than or equal to group.consumer.max.heartbeat.interval.ms"),
        ((HEARTBEAT, SET, "soon"), "Not a number of type INT"),
        ((HEARTBEAT, APPEND, "1"), "it is no list"),
        (("retention.ms", SET, "1"), "Unknown group config name: retention.ms"),
        (("retention.ms", DELETE, None), "Unknown group config name: retention.ms"),
    ],
)
def test_what_a_group_is_not_configured_with(requests, change, why):
    told = alter(requests, GROUP, "g", change)
    assert told.error_code is ErrorCode.invalid_config
    assert why in told.error_message


# --- ListConfigResources -----------------------------------------------------------------------------------


def test_resources_are_listed_by_their_types(lake, requests):
    lake.create_topic("t")
    for group in ("g2", "g1"):
        alter(requests, GROUP, group, (HEARTBEAT, SET, "900"))

    def listed(*types):
        answer = requests.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": types})
        return [(one.resource_type, one.resource_name) for one in answer.config_resources]

    assert listed(GROUP) == [(GROUP, "g1"), (GROUP, "g2")]
    assert (TOPIC, "t") in listed(TOPIC)
    assert listed(BROKER, BROKER_LOGGER) == [(BROKER, "1"), (BROKER_LOGGER, "1")]
    assert {kind for kind, _ in listed()} == {TOPIC, BROKER, BROKER_LOGGER, GROUP}
    alter(requests, GROUP, "g1", (HEARTBEAT, DELETE, None))
    assert listed(GROUP) == [(GROUP, "g2")]


def test_resources_of_an_unknown_type_are_none(requests):
    answer = requests.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, {"resource_types": [TOPIC, 99]})
    assert (answer.error_code, answer.config_resources) == (ErrorCode.unsupported_version, ())


def test_the_first_version_lists_no_resource_of_another_type_than_clients_metrics(requests):
    alter(requests, GROUP, "g", (HEARTBEAT, SET, "900"))
    answer = requests.ask(ApiKey.LIST_CONFIG_RESOURCES, 0, {})
    assert (answer.error_code, answer.config_resources) == (ErrorCode.none, ())


# --- AlterConfigs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_CONFIGS))
def test_a_replaced_configuration_is_reset_where_it_is_silent(lake, requests, version):
    lake.create_topic("t", config={"retention.ms": "5", "segment.bytes": "100"})

    def replace(validate_only=False, **keys):
        wanted = [{"name": key.replace("_", "."), "value": value} for key, value in keys.items()]
        asked = [{"resource_type": TOPIC, "resource_name": "t", "configs": wanted}]
        body = {"resources": asked, "validate_only": validate_only}
        (told,) = requests.ask(ApiKey.ALTER_CONFIGS, version, body).responses
        return told.error_code.name

    assert replace(validate_only=True, retention_ms="6") == "none"
    assert replace(retention_ms="soon") == "invalid_config"
    assert replace(retention_ms=None) == "invalid_request"
    assert lake.topic_config("t").overrides == {"retention.ms": "5", "segment.bytes": "100"}
    assert replace(retention_ms="6") == "none"
    assert lake.topic_config("t").overrides == {"retention.ms": "6"}
    assert replace() == "none"
    assert lake.topic_config("t").overrides == {}


def test_where_access_is_kept_stays_when_the_rest_is_replaced(tmp_path, lake, requests):
    root = str(tmp_path / "locked")
    lake.alter_config({"access.root": root, "num.partitions": "3"})

    def replace(**keys):
        wanted = [{"name": key.replace("_", "."), "value": value} for key, value in keys.items()]
        asked = [{"resource_type": BROKER, "resource_name": "", "configs": wanted}]
        (told,) = requests.ask(ApiKey.ALTER_CONFIGS, 2, {"resources": asked, "validate_only": False}).responses
        return told.error_code.name

    assert replace(access_root=str(tmp_path / "mine")) == "invalid_config"
    assert replace(log_retention_ms="5") == "none"
    assert lake.reload_config().overrides == {"access.root": root, "log.retention.ms": "5"}
    found = configs(describe(requests, BROKER, ""))
    assert {name: one.read_only for name, one in found.items()} == {"access.root": True, "log.retention.ms": False}


# --- typed topics ------------------------------------------------------------------------------------------

SCHEMA = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
TYPED = {"value.columns": "avro", "value.schema": SCHEMA}


def test_a_topic_becomes_typed_and_plain_again_by_its_configuration(lake, requests):
    lake.create_topic("t")
    changes = [(key, SET, value) for key, value in (TYPED | {"value.bytes": "derive"}).items()]
    assert alter(requests, TOPIC, "t", *changes).error_code is ErrorCode.none
    assert lake.describe_values("t").columns == (("a", "integer"),)
    found = configs(describe(requests, TOPIC, "t"))
    assert {key: found[key].value for key in (*TYPED, "value.bytes")} == TYPED | {"value.bytes": "derive"}
    assert found["topic.validate"].value == "false"
    assert not [name for name in found if name == "value.schemas"]  # a fact, which no client sets
    assert (
        alter(requests, TOPIC, "t", *((key, DELETE, None) for key in (*TYPED, "value.bytes"))).error_code
        is ErrorCode.none
    )
    values = lake.describe_values("t")
    assert (values.kind, values.columns) == (None, (("a", "integer"),))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"value.columns": "avro"}, "without a schema"),
        ({"value.columns": "avro", "value.schema": "none"}, "none"),
        ({"value.columns": "json", "value.schema": "{}", "value.bytes": "derive"}, "value.bytes (derive)"),
        ({"topic.validate": "true"}, "without value.columns"),
        ({"value.schemas": "[]"}, "value.schemas"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_keys_of_typed_topics_that_do_not_go_together_are_refused(lake, requests, changes, why, validate_only):
    lake.create_topic("t")
    told = alter(requests, TOPIC, "t", *((k, SET, v) for k, v in changes.items()), validate_only=validate_only)
    assert told.error_code is ErrorCode.invalid_config
    assert why in told.error_message
    assert lake.describe_values("t") is None


def test_brokers_have_no_default_of_what_one_topics_values_are(requests):
    told = alter(requests, BROKER, "", ("value.columns", SET, "avro"))
    assert told.error_code is ErrorCode.invalid_config
    assert "Each topic sets it for itself" in told.error_message
