"""The audit in a topic: in order, also past a store that gives no answer for a while, and when the broker stops."""

import asyncio
import json

from support.broker_requests import Requests
from support.logs import memory_lake
from support.produce_requests import read_back
from support.waiting import eventually_async

from tidelog.broker.access import audit_topic
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.errors import StorageUnavailableError

AUDITED = AccessSettings(everyone=False, audit_topic="audit")


def lines_in(lake, topic="audit"):
    return [json.loads(value) for value in read_back(lake, topic)[0]] if topic in lake.topics() else []


def test_denials_are_in_the_topic():
    lake = memory_lake()[0]
    with Requests(lake, access=AUDITED) as requests:
        for name in "abc":
            requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": name}]}, principal="User:alice")

        async def there():
            await eventually_async(lambda: len(lines_in(lake)) == 3, "the lines are there")

        requests.loop.run_until_complete(there())
    assert [(line["principal"], line["name"]) for line in lines_in(lake)] == [("User:alice", name) for name in "abc"]


def test_what_waits_and_what_was_counted_is_in_the_topic_when_the_broker_stops():
    lake = memory_lake()[0]
    with Requests(lake, access=AUDITED) as requests:
        for _ in range(3):
            requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}]})
    assert [line.get("again") for line in lines_in(lake)] == [None, 2]


def test_a_store_without_answers_loses_no_line(monkeypatch):
    monkeypatch.setattr(audit_topic, "AGAIN_AFTER_S", 0.01)
    lake = memory_lake()[0]
    failures = [StorageUnavailableError("no answer")] * 3
    with Requests(lake, access=AUDITED) as requests:
        real = audit_topic.AuditTopic._write

        def write(self, lines):
            if failures:
                raise failures.pop()
            real(self, lines)

        monkeypatch.setattr(audit_topic.AuditTopic, "_write", write)
        for name in "ab":
            requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": name}]})

        async def there():
            await eventually_async(lambda: len(lines_in(lake)) == 2, "the lines are there")

        requests.loop.run_until_complete(there())
    assert [line["name"] for line in lines_in(lake)] == ["a", "b"]


def test_without_the_setting_there_is_no_topic():
    lake = memory_lake()[0]
    with Requests(lake, access=AccessSettings(everyone=False)) as requests:
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}]})
        requests.loop.run_until_complete(asyncio.sleep(0))
    assert lake.topics() == []
