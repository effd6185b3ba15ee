"""The audit in a topic: in order, also past a store that gives no answer for a while, and when the broker stops."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from support.broker_requests import Requests
from support.logs import memory_lake, quiet
from support.produce_requests import read_back
from support.waiting import eventually_async

from tidelog.broker.base import topic_lines
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.appends.appender import AppendBatch
from tidelog.log.base.errors import RecordTooLargeError, RequestForgottenError, StorageUnavailableError

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


# The second: more than one commit tries.
FAULTS = {"nothing is stored": ("put", "before", 3), "what is stored has no answer": ("put_if_absent", "after", 100)}


@pytest.mark.parametrize(("method", "phase", "times"), FAULTS.values(), ids=FAULTS)
def test_a_store_without_answers_loses_no_line_and_doubles_none(monkeypatch, method, phase, times):
    monkeypatch.setattr(topic_lines, "AGAIN_AFTER_S", 0.01)
    lake, storage, _ = memory_lake()
    lake.create_topic("audit", 1)
    left = [times]

    def no_answer(called, path, at):
        if (called, at) == (method, phase) and path.startswith("audit/") and left[0]:
            left[0] -= 1
            raise StorageUnavailableError("no answer")

    storage.hook = no_answer
    with Requests(lake, access=AUDITED) as requests:
        for name in "abc":
            requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": name}]})

        async def there():
            await eventually_async(lambda: not left[0] and len(lines_in(lake)) == 3, "the lines are there")

        requests.loop.run_until_complete(there())
    assert [line["name"] for line in lines_in(lake)] == ["a", "b", "c"]


def test_lines_of_which_the_log_no_longer_tells_hold_up_no_others(monkeypatch, caplog):
    run, forgotten = AppendBatch.run, ["the log no longer says"]

    def once_forgotten(batch):
        if forgotten:
            raise RequestForgottenError(forgotten.pop())
        return run(batch)

    monkeypatch.setattr(AppendBatch, "run", once_forgotten)
    lake = memory_lake()[0]
    with Requests(lake, access=AUDITED) as requests:
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]})

        async def warned():
            await eventually_async(lambda: "is not known" in " ".join(caplog.messages), "a warning")

        requests.loop.run_until_complete(warned())
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "b"}]})
    assert [line["name"] for line in lines_in(lake)] == ["b"]


def test_a_line_that_the_store_does_not_take_when_the_broker_stops_is_in_the_log_only():
    lake, storage, _ = memory_lake()
    lake.create_topic("audit", 1)

    def no_answer(called, path, at):
        if (called, at) == ("put", "before") and path.startswith("audit/"):
            raise StorageUnavailableError("no answer")

    storage.hook = no_answer
    with Requests(lake, access=AUDITED) as requests:
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]})
    storage.hook = quiet
    assert lines_in(lake) == []


def test_without_the_setting_there_is_no_topic():
    lake = memory_lake()[0]
    with Requests(lake, access=AccessSettings(everyone=False)) as requests:
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "t"}]})
        requests.loop.run_until_complete(asyncio.sleep(0))
    assert lake.topics() == []


def test_a_line_that_is_too_large_holds_up_no_others(monkeypatch, caplog):
    run, large = AppendBatch.run, ["it has more than max.message.bytes"]

    def once_too_large(batch):
        if large:
            raise RecordTooLargeError(large.pop())
        return run(batch)

    monkeypatch.setattr(AppendBatch, "run", once_too_large)
    lake = memory_lake()[0]
    with Requests(lake, access=AUDITED) as requests:
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]})

        async def warned():
            await eventually_async(lambda: "does not take one of them" in " ".join(caplog.messages), "a warning")

        requests.loop.run_until_complete(warned())
        requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "b"}]})
    assert [line["name"] for line in lines_in(lake)] == ["b"]


def test_lines_that_wait_are_bounded_by_number_and_by_bytes():
    lines = topic_lines.TopicLines(None, None, None, what="", elsewhere="", most=3, most_bytes=10)
    lines._task = SimpleNamespace(done=lambda: False)
    lines.add(b"1", b"22", b"333", b"4444")
    assert list(lines._waiting) == [b"22", b"333", b"4444"]
    lines.add(b"55555")
    assert list(lines._waiting) == [b"4444", b"55555"]
