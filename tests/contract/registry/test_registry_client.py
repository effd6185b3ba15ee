"""tidelog's registry client, over HTTP and without a server: the same answers, and confluent-kafka's shape."""

import pytest
from support.registry_servers import running_registry

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.lake import Lake
from tidelog.schema_registry import (
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    SchemaVersion,
    ServerConfig,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)

INT, LONG, TEXT = Schema('"int"'), Schema('"long"'), Schema('"string"')
RECORD = Schema('{"type":"record","name":"r","fields":[]}')


@pytest.fixture(params=["http", "lake", "address"])
def client(request, tmp_path):
    """Over a server's URL, an opened lake, and a lake's address."""
    if request.param == "http":
        with running_registry(tmp_path / "lake") as running, SchemaRegistryClient({"url": running.url}) as one:
            yield one
    elif request.param == "lake":
        with Lake(tmp_path / "lake") as lake, SchemaRegistryClient({"lake": lake}) as one:
            yield one
    else:
        with SchemaRegistryClient({"lake": str(tmp_path / "lake"), "topic": "_team"}) as one:
            yield one


def refused(status, code):
    wanted = (status, code)
    return pytest.raises(SchemaRegistryError, check=lambda error: (error.http_status_code, error.error_code) == wanted)


def test_schemas_are_registered_and_found(client):
    assert client.get_subjects() == []
    assert client.register_schema("a/b %", INT) == 1
    assert client.register_schema("a/b %", LONG) == 2
    found = client.register_schema_full_response("a/b %", INT)
    assert (found.subject, found.version, found.schema_id, found.schema) == ("a/b %", 1, 1, INT)
    assert client.get_schema(2) == LONG
    assert client.get_schema_by_guid(found.guid) == INT
    assert client.lookup_schema("a/b %", LONG).version == 2
    assert client.get_latest_version("a/b %").schema_id == 2
    assert client.get_version("a/b %", 1).schema == INT
    assert client.get_versions("a/b %") == [1, 2]
    assert client.get_versions("a/b %", offset=1, limit=1) == [2]
    assert client.get_subjects_by_schema_id(1) == ["a/b %"]
    assert client.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]
    assert client.get_contexts() == ["."]


def test_references_kinds_and_metadata_come_back(client):
    client.register_schema("n", RECORD)
    referring = Schema('{"type":"array","items":"r"}', references=[SchemaReference("r", "n", 1)])
    number = client.register_schema("a", referring)
    assert client.get_schema(number) == referring
    assert client.get_schema(number, fmt="resolved").schema_str == f'{{"type":"array","items":{RECORD.schema_str}}}'
    assert client.get_referenced_by("n", 1) == [number]
    rules = RuleSet(
        domain_rules=[Rule("r", kind=RuleKind.CONDITION, mode=RuleMode.WRITE, type="CEL", expr="true", disabled=False)]
    )
    metadata = Metadata(MetadataTags({"**.a": ["PII"]}), MetadataProperties({"k": "v", "m": "n"}), ["k"])
    number = client.register_schema("j", Schema("true", "JSON", metadata=metadata, rule_set=rules))
    assert client.get_schema(number).metadata == metadata
    assert client.get_schema(number).rule_set == rules
    assert client.get_schema_versions(number) == [SchemaVersion("j", 1)]
    assert client.get_latest_with_metadata("j", {"k": "v", "m": "n"}).version == 1
    assert client.get_latest_with_metadata("j", {"k": "v"}).version == 1
    with refused(404, 40402):
        client.get_latest_with_metadata("j", {"k": "w"})


def test_refusals_have_confluents_codes(client):
    for ask, status, code in (
        (lambda: client.get_schema(7), 404, 40403),
        (lambda: client.get_versions("a"), 404, 40401),
        (lambda: client.register_schema("a", Schema("{")), 422, 42201),
        (lambda: client.get_mode("a"), 404, 40409),
        (lambda: client.get_config("a"), 404, 40408),
        (lambda: client.set_compatibility(level="sideways"), 422, 42203),
    ):
        with refused(status, code):
            ask()
    client.register_schema("a", INT)
    with refused(409, 40901):
        client.register_schema("a", TEXT)
    assert client.get_subjects() == ["a"]


def test_deletes(client):
    client.register_schema("a", INT)
    client.register_schema("a", LONG)
    assert client.delete_version("a", 2) == 2
    assert client.get_versions("a", deleted=True) == [1, 2]
    assert client.get_versions("a", deleted_only=True) == [2]
    assert client.get_subjects_by_schema_id(1, offset=1) == []
    assert client.register_schema("a", LONG) == 2
    assert client.get_versions("a") == [1, 3]
    assert client.delete_subject("a") == [1, 3]
    assert client.get_subjects(deleted_only=True) == ["a"]
    assert client.delete_subject("a", permanent=True) == [1, 3]
    with refused(404, 40403):
        client.get_schema(1)


def test_compatibility_and_settings(client):
    client.register_schema("a", INT)
    assert client.test_compatibility("a", LONG)
    assert not client.test_compatibility("a", TEXT, 1)
    assert not client.test_compatibility_all_versions("a", TEXT)
    assert client.get_compatibility() == "BACKWARD"
    assert client.set_compatibility(level="none") == "NONE"
    assert client.set_config("a", ServerConfig(normalize=True)) == ServerConfig(normalize=True)
    assert client.get_config("a") == ServerConfig(compatibility_level="NONE", normalize=True)
    assert client.delete_config("a") == ServerConfig(compatibility_level="NONE", normalize=True)
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode("a", "READONLY") == client.get_mode("a") == client.delete_mode("a") == "READONLY"
    assert client.update_global_mode("READONLY") == "READONLY"


def test_what_never_changes_is_asked_for_once(client, monkeypatch):
    client.register_schema("a", INT)
    client.get_schema(1)
    monkeypatch.setattr(client, "_registry", None)
    assert client.register_schema("a", INT) == 1
    assert client.get_schema(1) == INT
    client.clear_caches()
    with pytest.raises(AttributeError):
        client.get_schema(1)


def test_the_next_url_is_asked_where_one_does_not_answer(tmp_path):
    with running_registry(tmp_path / "lake") as running:
        with SchemaRegistryClient({"url": f"http://127.0.0.1:1, {running.url}", "max.retries": 0}) as client:
            assert client.register_schema("a", INT) == 1
        with SchemaRegistryClient({"url": "http://127.0.0.1:1", "max.retries": 0}) as client, refused(-1, -1):
            client.get_subjects()


def test_a_client_and_a_server_over_one_lake_agree(tmp_path):
    with running_registry(tmp_path / "lake") as running, Lake(tmp_path / "lake") as lake:
        http, local = SchemaRegistryClient({"url": running.url}), SchemaRegistryClient({"lake": lake})
        assert http.register_schema("a", INT) == 1
        assert local.register_schema("b", LONG) == 2
        assert http.get_schema(2) == LONG
        assert local.get_schema(1) == INT
        http.close()
        local.close()


@pytest.mark.parametrize(
    "conf", [{}, {"url": "http://a", "lake": "b"}, {"url": "localhost:8081"}, {"lake": "a", "no.such.key": 1}]
)
def test_other_configurations_are_refused(conf):
    with pytest.raises(ValueError, match=r"url|properties"):
        SchemaRegistryClient(conf)


@pytest.mark.parametrize(
    ("strategy", "record", "subject"),
    [
        (topic_subject_name_strategy, None, "flights-value"),
        (record_subject_name_strategy, "a.Flight", "a.Flight"),
        (topic_record_subject_name_strategy, "a.Flight", "flights-a.Flight"),
    ],
)
def test_subject_name_strategies(strategy, record, subject):
    assert strategy(SerializationContext("flights", MessageField.VALUE), record) == subject
    if record:
        with pytest.raises(ValueError, match="no name"):
            strategy(SerializationContext("flights", MessageField.VALUE), None)
