"""A backup by the page's own commands while producers run, a restore of it, and what goes on from there."""

import re
import subprocess
import threading
from pathlib import Path

import pytest

import tidelog

PAGE = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
BLOCKS = [block.splitlines() for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]
[[FIRST_ROUND, SECOND_ROUND, CHECK_COPY], [RESTORE, CHECK_RESTORED]] = BLOCKS


@pytest.fixture
def run(tmp_path):
    """Runs a line of the page with folders of the test's own."""

    def shell(line: str) -> None:
        programs = Path(tidelog.__file__).parent, Path(subprocess.sys.executable).parent
        line = line.replace("/tmp/", f"{tmp_path}/").replace(".venv/bin", str(programs[1]))
        done = subprocess.run(["bash", "-ec", line], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    return shell


def read(lake: str) -> list[bytes]:
    """The values of all partitions, each in its order."""
    with tidelog.Lake(lake, create=False) as opened:
        topic = opened.topic("orders")
        return [
            value
            for partition in range(2)
            for batch in topic.read(partition)
            for value in batch.column("value").to_pylist()
        ]


def test_a_backup_is_whole_and_programs_go_on_from_it(tmp_path, run):
    lake, backup = str(tmp_path / "lake"), str(tmp_path / "backup")
    with tidelog.Lake(lake) as opened:
        opened.create_topic("orders", 2)
    sent: list[bytes] = []
    stop = threading.Event()
    conf = {"lake": lake, "linger.ms": 0, "batch.num.messages": 5}
    began = threading.Event()

    def produce() -> None:
        with tidelog.Producer(conf) as producer:
            while not stop.is_set():
                value = str(len(sent)).encode()
                producer.produce("orders", key=value, value=value)
                producer.poll(0)
                sent.append(value)
                if len(sent) % 50 == 0:
                    producer.flush()
                    began.set()

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        assert began.wait(60)
        run(FIRST_ROUND)
    finally:
        stop.set()
        producing.join()
    group = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    with tidelog.Consumer({"lake": lake, **group}) as consumer:
        consumer.subscribe(["orders"])
        seen = [record.value() for record in consumer.consume(30, timeout=60)]
        consumer.commit(asynchronous=False)
    run(SECOND_ROUND)
    run(CHECK_COPY)
    assert sorted(read(backup)) == sorted(sent)

    with tidelog.Producer({"lake": lake}) as producer:  # after the backup
        producer.produce("orders", value=b"lost with the lake")
        producer.flush()
    run(RESTORE)
    run(CHECK_RESTORED)
    assert read(lake) == read(backup)
    with tidelog.Producer({"lake": lake}) as producer:
        producer.produce("orders", value=b"after")
        producer.flush()
    with tidelog.Consumer({"lake": lake, **group}) as consumer:
        consumer.subscribe(["orders"])
        rest = [record.value() for record in consumer.consume(len(sent) + 1 - len(seen), timeout=60)]
    assert sorted(seen + rest) == sorted([*sent, b"after"])
