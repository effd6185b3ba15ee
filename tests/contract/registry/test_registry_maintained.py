"""`tidelog maintain` over a registry's topic on a disk, killed again and again, while a registry serves."""

import random
import signal
import threading
import time

import httpx
from support.cli_calls import done
from test_registry_processes import registry_process, tidelog

from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake

CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "max.compaction.lag.ms": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000000",
    "file.delete.delay.ms": "0",
}


def fixed(size):
    return {"schema": f'{{"type":"fixed","name":"f{size}","size":{size}}}'}


def all_of(url):
    with httpx.Client(base_url=url, timeout=None) as client:
        schemas = client.get("/schemas", params={"deleted": "true"}).json()
        return [(one["subject"], one["version"], one["id"], one["schema"]) for one in schemas]


def test_a_registry_serves_while_its_topic_is_compacted_and_another_starts_from_that(tmp_path):
    lake, chance = tmp_path / "lake", random.Random(1)
    with Lake(lake) as opened:
        opened.create_topic(SCHEMAS_TOPIC, 1, CONFIG)
    with registry_process(lake) as (_, one):
        over, failures, ids = threading.Event(), [], {}

        def serve():
            try:
                with httpx.Client(base_url=one["url"], timeout=None) as client:
                    client.put("/config", json={"compatibility": "NONE"}).raise_for_status()
                    while not over.is_set():
                        size = chance.randrange(20) + 1
                        subject = f"s{size % 3}"
                        answer = client.post(f"/subjects/{subject}/versions", json=fixed(size)).raise_for_status()
                        assert ids.setdefault(size, answer.json()["id"]) == answer.json()["id"]
                        group = {"compatibilityGroup": f"g{size}"}
                        client.put(f"/config/{subject}", json=group).raise_for_status()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            for _ in range(4):
                upkeep = tidelog("--lake", lake, "maintain")
                time.sleep(chance.uniform(0.4, 2.5))  # anywhere in its work, or before, or after it
                upkeep.send_signal(signal.SIGKILL)
                upkeep.wait()
                done("--lake", str(lake), "maintain")
        finally:
            over.set()
            thread.join()
        assert failures == []
        done("--lake", str(lake), "maintain")
        with Lake(lake) as opened:
            topic = opened.topic(SCHEMAS_TOPIC)
            kept, (_, end) = sum(batch.num_rows for batch in topic.read(0)), topic.offsets()[0]
        assert kept < end / 2
        with registry_process(lake) as (_, other):
            assert all_of(other["url"]) == all_of(one["url"])
            assert {number for _, _, number, _ in all_of(other["url"])} == {*ids.values()}
            for size in range(1, 31):
                answer = httpx.post(f"{other['url']}/subjects/new/versions", json=fixed(size), timeout=None).json()
                ids.setdefault(size, answer["id"])
                assert ids[size] == answer["id"]
    assert sorted(ids.values()) == list(range(1, 31))
