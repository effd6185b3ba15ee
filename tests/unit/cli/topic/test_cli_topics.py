"""tidelog topic …"""

import json

import pytest
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused
from support.logs import values


@pytest.fixture
def lake():
    """A lake with the topic orders (3 partitions, 5 records in partition 1) and the internal topic __state."""
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("orders", 3, {"retention.ms": "60000"})
        opened.create_topic("__state", 1)
        opened.topic("orders").append(values(*"abcde", partition=[1] * 5))
    return address


def test_create(lake):
    text = done(
        "topic", "create", "new", "--partitions", "4", "--config", "retention.ms=1", "--config", "segment.bytes=14",
        "--lake", lake,
    ).stdout  # fmt: skip
    topic = open_lake(lake).describe_topic("new")
    assert len(topic.partitions) == 4
    assert topic.config == {"retention.ms": "1", "segment.bytes": "14"}
    assert text == f"Created topic new with 4 partitions, id {topic.id}.\n"


def test_create_takes_the_lakes_number_of_partitions(lake):
    open_lake(lake).alter_config({"num.partitions": "2"})
    assert len(answer("topic", "create", "new", "--lake", lake)["partitions"]) == 2


def test_create_creates_the_lake():
    address = lake_address()
    assert answer("topic", "create", "new", "--lake", address)["name"] == "new"
    assert open_lake(address).topics() == ["new"]


def test_list(lake):
    assert done("topic", "list", "--lake", lake).stdout == "orders\n"
    assert done("topic", "list", "--internal", "--lake", lake).stdout == "__state\norders\n"
    (row,) = answer("topic", "list", "--lake", lake)
    assert row.pop("bytes") > 0
    assert row == {"name": "orders", "partitions": 3, "offsets": 5, "segments": 1}
    assert [row["name"] for row in answer("topic", "list", "--internal", "--lake", lake)] == ["__state", "orders"]


def test_describe_as_json_is_exact(lake):
    topic = open_lake(lake).describe_topic("orders")
    assert answer("topic", "describe", "orders", "--lake", lake) == {
        "name": "orders",
        "id": topic.id,
        "partitions": [
            {"partition": 0, "start": 0, "end": 0, "segments": 0, "bytes": 0},
            {"partition": 1, "start": 0, "end": 5, "segments": 1, "bytes": topic.partitions[1].bytes},
            {"partition": 2, "start": 0, "end": 0, "segments": 0, "bytes": 0},
        ],
        "config": {"retention.ms": "60000"},
    }


def test_describe_for_people(lake):
    topic = open_lake(lake).describe_topic("orders")
    head, _, *table = done("topic", "describe", "orders", "--lake", lake).stdout.splitlines()
    assert head.startswith("orders  3 partitions, 5 offsets, ")
    assert head.endswith(topic.id)
    rows = [line.split() for line in table if line]
    assert rows[0] == ["partition", "start", "end", "segments", "size"]
    assert rows[2][:4] == ["1", "0", "5", "1"]
    assert rows[-1] == ["retention.ms", "60000", "1", "min"]


def test_describe_all_shows_defaults_and_who_set_what(lake):
    open_lake(lake).alter_config({"log.segment.bytes": "1048576"})
    shown = answer("topic", "describe", "orders", "--all", "--lake", lake)["settings"]
    by_name = {row["name"]: (row["value"], row["source"]) for row in shown}
    assert by_name["retention.ms"] == ("60000", "topic")
    assert by_name["segment.bytes"] == ("1048576", "lake")
    assert by_name["cleanup.policy"] == ("delete", "default")
    text = done("topic", "describe", "orders", "--all", "--lake", lake).stdout
    assert "cleanup.policy" in text
    assert "1.0 MiB" in text


def test_alter(lake):
    text = done("topic", "alter", "orders", "--partitions", "5", "--config", "cleanup.policy=compact", "--lake", lake)
    assert text.stdout == "Altered topic orders: 5 partitions; cleanup.policy=compact, retention.ms=60000.\n"
    shown = answer("topic", "alter", "orders", "--delete-config", "retention.ms", "--lake", lake)
    assert shown["config"] == {"cleanup.policy": "compact"}
    assert len(shown["partitions"]) == 5


def test_delete_needs_a_yes_where_nobody_can_be_asked(lake):
    assert "Add --yes" in refused(2, "topic", "delete", "orders", "--lake", lake, stdin="y\n")
    assert open_lake(lake).topics() == ["orders"]
    assert done("topic", "delete", "orders", "--yes", "--lake", lake).stdout == "Deleted topic orders.\n"
    assert open_lake(lake).topics() == []


@pytest.mark.parametrize(("reply", "code", "left"), [("n\n", 1, ["orders"]), ("\n", 1, ["orders"]), ("y\n", 0, [])])
def test_delete_asks_a_person(lake, monkeypatch, reply, code, left):
    monkeypatch.setattr("tidelog.cli.topics.interactive", lambda: True)
    result = cli("topic", "delete", "orders", "--lake", lake, stdin=reply)
    assert result.exit_code == code
    assert "Delete topic orders (3 partitions, 5 offsets" in result.stderr
    assert open_lake(lake).topics() == left


def test_delete_as_json(lake):
    topic_id = open_lake(lake).describe_topic("orders").id
    assert answer("topic", "delete", "orders", "-y", "--lake", lake) == {"deleted": "orders", "id": topic_id}


def test_delete_records_by_option(lake):
    shown = answer("topic", "delete-records", "orders", "--offset", "1:2", "--offset", "0:-1", "--lake", lake)
    assert shown == {"topic": "orders", "partitions": [{"partition": 0, "start": 0}, {"partition": 1, "start": 2}]}
    assert open_lake(lake).offsets("orders")[1] == (2, 5)
    text = done("topic", "delete-records", "orders", "--offset", "1:-1", "--lake", lake).stdout
    assert [line.split() for line in text.splitlines()] == [["partition", "start"], ["1", "5"]]


def test_delete_records_by_kafkas_file(lake, tmp_path):
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 1, "offset": 3}], "version": 1}))
    shown = answer("topic", "delete-records", "orders", "--offset-json-file", str(file), "--lake", lake)
    assert shown["partitions"] == [{"partition": 1, "start": 3}]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("{", "is not JSON"),
        ("[]", 'has no list "partitions"'),
        ('{"partitions": []}', 'has no list "partitions"'),
        ('{"partitions": [{"topic": "orders", "partition": 1, "offset": 3}], "version": 2}', "version 2"),
        ('{"partitions": [{"topic": "orders", "partition": 1}]}', "needs topic, partition and offset"),
        ('{"partitions": [{"topic": "orders", "partition": "1", "offset": 3}]}', "needs topic, partition and offset"),
        ('{"partitions": [{"topic": "other", "partition": 1, "offset": 3}]}', "names topic 'other'"),
        (
            '{"partitions": [{"topic": "orders", "partition": 1, "offset": 3},'
            ' {"topic": "orders", "partition": 1, "offset": 4}]}',
            "Partition 1 is given twice",
        ),
    ],
)
def test_files_that_delete_records_does_not_take(lake, tmp_path, body, why):
    file = tmp_path / "o"
    file.write_text(body)
    said = refused(2, "topic", "delete-records", "orders", "--offset-json-file", str(file), "--lake", lake)
    assert why in said
    assert open_lake(lake).offsets("orders")[1] == (0, 5)


@pytest.mark.parametrize(
    ("code", "args", "why"),
    [
        (1, ["create", "orders"], "Topic 'orders' already exists."),
        (1, ["create", "a/b"], "contains one or more characters other than ASCII alphanumerics"),
        (1, ["create", "x", "--partitions", "0"], "must be larger than 0"),
        (1, ["create", "x", "--config", "retention.msec=1"], "The nearest known one is 'retention.ms'"),
        (1, ["create", "x", "--config", "retention.ms=soon"], "Not a number of type LONG"),
        (2, ["create", "x", "--config", "retention.ms"], "'retention.ms' is not of the form key=value"),
        (2, ["create", "x", "--config", "a=1", "--config", "a=2"], "'a' is given twice"),
        (2, ["create", "x", "--partitions", "many"], "--partitions"),
        (2, ["create"], "TOPIC"),
        (1, ["describe", "nope"], "Topic 'nope' does not exist."),
        (1, ["alter", "nope", "--partitions", "9"], "Topic 'nope' does not exist."),
        (1, ["alter", "orders", "--partitions", "2"], "Partitions only grow"),
        (1, ["alter", "orders", "--delete-config", "retention.m"], "The nearest known one is 'retention.ms'"),
        (2, ["alter", "orders"], "Nothing to change"),
        (2, ["alter", "orders", "--config", "retention.ms=1", "--delete-config", "retention.ms"], "both set and reset"),
        (1, ["delete", "nope", "--yes"], "Topic 'nope' does not exist."),
        (1, ["delete", "nope"], "Topic 'nope' does not exist."),
        (1, ["delete-records", "orders", "--offset", "1:6"], "the partition has offsets 0 to 5"),
        (1, ["delete-records", "orders", "--offset", "7:0"], "has no partition 7"),
        (2, ["delete-records", "orders", "--offset", "1"], "is not of the form PARTITION:OFFSET"),
        (2, ["delete-records", "orders", "--offset", "1:-2"], "is not of the form PARTITION:OFFSET"),
        (2, ["delete-records", "orders", "--offset", "1:1", "--offset", "1:2"], "Partition 1 is given twice"),
        (2, ["delete-records", "orders"], "Say before which offsets"),
        (2, ["delete-records", "orders", "--offset", "1:1", "--offset-json-file", "f"], "Say before which offsets"),
        (1, ["delete-records", "orders", "--offset-json-file", "/nowhere/f"], "/nowhere/f: No such file"),
        (2, ["rename", "orders"], "rename"),
    ],
)  # fmt: skip
def test_refusals(lake, code, args, why):
    assert why in refused(code, "topic", *args, "--lake", lake)


def test_records_of_a_compacted_topic_are_not_deleted_by_offset(lake):
    open_lake(lake).alter_topic("orders", config={"cleanup.policy": "compact"})
    said = refused(1, "topic", "delete-records", "orders", "--offset", "1:1", "--lake", lake)
    assert "cleanup.policy=compact" in said
