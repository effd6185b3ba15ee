"""A producer and a consumer that meet a foreign entry: they get an error, and go on when it is taken back."""

from pathlib import Path

import orjson
import pytest
from support.consumers import PATIENCE_S, consumer, poll_texts
from support.logs import values

from tidelog.check.lake import repair
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError
from tidelog.clients.values.message import Message
from tidelog.log.delta import layout
from tidelog.log.lake import Lake

FOREIGN = [
    {"commitInfo": {"operation": "DELETE", "engineInfo": "another"}},
    {"add": {"path": "part-0.parquet", "partitionValues": {"partition": "0", "base_offset": "0"}}},
]


@pytest.mark.parametrize("idempotent", [True, False])
def test_clients_go_on_by_themselves(tmp_path: Path, idempotent: bool) -> None:
    with Lake(str(tmp_path / "lake")) as lake:
        lake.create_topic("t", 1)
        lake.topic("t").append(values("a"))
        told: list[tuple[KafkaError | None, int | None]] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            told.append((error, message.offset()))

        writer = Producer({"lake": str(tmp_path / "lake"), "enable.idempotence": idempotent})
        reader = consumer(tmp_path / "lake")
        reader.subscribe(["t"])
        assert poll_texts(reader, 1) == ["a"]
        writer.produce("t", value="b", on_delivery=on_delivery)
        writer.flush(PATIENCE_S)
        assert poll_texts(reader, 1) == ["b"]

        entry = f"t/{layout.entry_path(lake.topic('t').state().version + 1)}"
        assert lake.storage.put_if_absent(entry, b"\n".join(map(orjson.dumps, FOREIGN)))
        writer.produce("t", value="c", on_delivery=on_delivery)
        writer.flush(PATIENCE_S)
        error = told[1][0]
        assert error is not None
        assert "not written by tidelog" in error.str()
        assert not error.fatal()

        assert repair(lake, execute=True).report.green
        writer.produce("t", value="d", on_delivery=on_delivery)
        writer.flush(PATIENCE_S)
        assert told[2] == (None, 2)
        heard = poll_texts(reader, 1)
        while heard != ["d"]:  # the entry may have been reported to it, once or more
            assert heard
            heard = poll_texts(reader, 1)
        reader.close()
        writer.close()
