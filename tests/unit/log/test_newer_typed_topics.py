"""A typed topic of a later format than this tidelog knows: each entrance refuses it by one sentence.

What an earlier tidelog makes of a typed topic of today: its rule is the same, with lower numbers.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from support.cli_calls import cli
from support.consumers import consumer, poll_some
from support.value_subjects import Subjects, avro_record, framed_as

from tidelog import AdminClient, KafkaError, Producer
from tidelog.log.base.errors import UnsupportedFormatError
from tidelog.log.delta.layout import entry_path
from tidelog.log.lake import Lake
from tidelog.sources.catalog import Catalog
from tidelog.sources.options import parse_batch

WHY = "Topic 'typed' has on-disk format 4; this tidelog reads and writes formats 2 and 3 and no other. Upgrade tidelog."


@pytest.fixture
def lake(tmp_path: Path):
    """A lake with a typed topic of format 4 and a plain one, both with records, opened by a process that starts now."""
    with Lake(tmp_path / "lake") as before:
        number = Subjects(before).register("typed-value", avro_record(a="int"))
        typed = {"value.columns": "avro", "value.schema.subject": "typed-value", "value.bytes": "derive"}
        before.create_topic("typed", config=typed)
        before.create_topic("plain")
        for topic in ("typed", "plain"):
            before.topic(topic).append(framed_as(number, number))
    first = tmp_path / "lake/typed" / entry_path(0)
    text = first.read_text()
    assert '"tidelog.format":"3"' in text
    first.write_text(text.replace('"tidelog.format":"3"', '"tidelog.format":"4"'))
    with Lake(tmp_path / "lake", create=False) as opened:
        yield opened


def records() -> pa.Table:
    return pa.table({"value": [b"x"]})


SPARK = parse_batch({"lake": "/unused", "subscribe": "typed"}, None)
ENTRANCES: dict[str, Callable[[Lake], object]] = {
    "append": lambda lake: lake.topic("typed").append(records()),
    "read": lambda lake: list(lake.topic("typed").read(0)),
    "offsets": lambda lake: lake.offsets("typed"),
    "offsets of times": lambda lake: lake.offsets_for_times("typed", {0: 0}),
    "configuration": lambda lake: lake.topic_config("typed"),
    "describe": lambda lake: lake.describe_topic("typed"),
    "describe values": lambda lake: lake.describe_values("typed"),
    "alter": lambda lake: lake.alter_topic("typed", config={"value.bytes": "keep"}),
    "create again": lambda lake: lake.create_topic("typed"),
    "delete records": lambda lake: lake.delete_records("typed", {0: 1}),
    "state of native reads": lambda lake: lake.topic("typed").state(),
    "the source of Spark": lambda lake: Catalog(lake, SPARK).refresh(required=True),
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_the_library_and_sparks_source(lake: Lake, entrance: Callable[[Lake], object]) -> None:
    with pytest.raises(UnsupportedFormatError) as refused:
        entrance(lake)
    assert WHY in str(refused.value)
    assert lake.offsets("plain") == {0: (0, 2)}


COMMANDS = {
    "describe": ("topic", "describe", "typed"),
    "alter": ("topic", "alter", "typed", "--config", "value.bytes=keep"),
    "partitions": ("topic", "alter", "typed", "--partitions", "2"),
    "delete records": ("topic", "delete-records", "typed", "--offset", "0:1"),
    "consume": ("consume", "typed", "-e"),
    "produce": ("produce", "typed"),
    "maintain": ("maintain", "--topic", "typed"),
    "forget": ("forget", "--topic", "typed", "--key", "a"),
    "check": ("check", "typed"),
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_commands(lake: Lake, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    entries = sorted((tmp_path / "lake/typed/_delta_log").iterdir())
    done = cli(*arguments, "--lake", lake.uri, stdin="x\n")
    assert done.exit_code != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert "on-disk format 4; this tidelog reads and writes formats 2 and 3" in said
    assert "Upgrade tidelog." in said
    assert "Traceback" not in said
    assert sorted((tmp_path / "lake/typed/_delta_log").iterdir()) == entries


def test_clients(lake: Lake) -> None:
    outcomes: list[KafkaError | None] = []
    code = UnsupportedFormatError("").kafka_code
    with Producer({"lake": lake.uri}) as producer:
        for topic in ("typed", "plain"):
            producer.produce(topic, b"x", on_delivery=lambda error, _: outcomes.append(error))
        producer.flush(60)
    assert sorted(one is None for one in outcomes) == [False, True]
    (refused,) = [one for one in outcomes if one is not None]
    assert (refused.code(), WHY in refused.str()) == (code, True)
    with AdminClient({"lake": lake.uri}) as admin, consumer(lake) as reader:
        for client in (admin, reader):
            assert client.list_topics(timeout=30).topics["typed"].error == KafkaError(code)
        reader.subscribe(["typed"])
        (event,) = poll_some(reader, 1)
        assert event.error() == KafkaError(code)
        assert WHY in event.error().str()
