"""Appends to a compacted topic: at will, or only at the head that was read."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.compacted_folds import KINDS, TOPIC, Pair, Seen, Texts, make, plain, records
from support.logs import memory_lake, open_lake, quiet

from tidelog.connect.runtime.offsets import OffsetState, offset_record
from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.errors import (
    InvalidConfigError,
    OutcomeUnknownError,
    RequestForgottenError,
    StorageUnavailableError,
)
from tidelog.log.compacted_topic import CompactedTopic
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import refusal
from tidelog.operations.connectors import workers_topic
from tidelog.operations.schemas.registry_log import RegistryLog


def add_up(topic: CompactedTopic[Texts], meanwhile: Callable[[], None] = lambda: None) -> int:
    """Add one to the number at the head, which is wrong unless it is still there when the record is appended."""

    def rule(fold: Texts) -> tuple[int, list[Pair]]:
        number = int(fold.texts.get("n", "0")) + 1
        meanwhile()
        return number, [(b"n", str(number).encode())]

    return topic.decide(rule)


def test_the_first_record_makes_the_topic() -> None:
    lake, _, _ = memory_lake()
    topic = plain(lake)
    assert topic.decide(lambda _: ("nothing", [])) == "nothing"
    topic.append([])
    assert lake.topics() == []
    assert add_up(topic) == 1
    config = lake.topic_config(TOPIC)
    assert (config.cleanup_policy, config.delete_retention_ms) == (("compact",), 86_400_000)
    assert lake.offsets(TOPIC) == {0: (0, 1)}


def test_two_that_make_the_topic_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, storage, clock = memory_lake()
    other, create = plain(open_lake(storage, clock)), lake.create_topic

    def faster(*given: Any) -> Any:
        add_up(other)
        return create(*given)

    monkeypatch.setattr(lake, "create_topic", faster)
    assert add_up(plain(lake)) == 2


def test_a_writer_that_lost_the_head_decides_again() -> None:
    lake, storage, clock = memory_lake()
    mine, other = plain(lake), plain(open_lake(storage, clock))
    asked: list[int] = []

    def overtaken_twice() -> None:
        asked.append(1)
        if len(asked) < 3:
            add_up(other)

    assert add_up(mine, overtaken_twice) == 3
    assert [value for _, value in records(KINDS["plain"], lake)] == [b"1", b"2", b"3"]


def test_a_topic_that_is_made_again_while_a_writer_decides() -> None:
    lake, storage, clock = memory_lake()
    mine, other = plain(lake), open_lake(storage, clock)
    assert [add_up(mine), add_up(mine)] == [1, 2]

    def again() -> None:
        if not made:
            made.append(1)
            other.delete_topic(TOPIC)
            make(KINDS["plain"], other)

    made: list[int] = []
    assert add_up(mine, again) == 1


def test_a_rule_that_refuses_appends_nothing() -> None:
    lake, _, _ = memory_lake()
    topic = plain(lake)
    add_up(topic)

    def refuse() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        add_up(topic, refuse)
    assert lake.offsets(TOPIC) == {0: (0, 1)}


def test_a_decision_is_known_without_another_look() -> None:
    lake, _, _ = memory_lake()
    topic = plain(lake)
    add_up(topic)
    assert topic.known(lambda fold: dict(fold.texts)) == {"n": "1"}


def test_an_answer_that_is_lost_is_asked_for_again() -> None:
    lake, storage, clock = memory_lake()
    topic = plain(lake)
    add_up(topic)
    lost: list[str] = []

    def lose(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after") and "_delta_log" in path and not lost:
            lost.append(path)
            raise StorageUnavailableError("timed out")

    storage.hook = lose
    assert add_up(topic) == 2
    storage.hook = quiet
    assert lost
    assert texts_and_offsets(plain(open_lake(storage, clock))) == ({"n": "2"}, [0, 1])


def test_an_append_that_compaction_hides_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, _, _ = memory_lake()
    topic = plain(lake)
    add_up(topic)

    unknown = refusal(OutcomeUnknownError("no answer", request_id=""))
    answers = [unknown, *[refusal(RequestForgottenError("the log no longer says"))] * 2]
    monkeypatch.setattr(JointAppend, "commit", lambda *_: answers.pop(0))
    with pytest.raises(OutcomeUnknownError, match=r"the log no longer says.*Read the topic"):
        add_up(topic)


def texts_and_offsets(topic: CompactedTopic[Texts]) -> tuple[Seen, list[int]]:
    return topic.look(lambda fold: (dict(fold.texts), list(fold.taken)))


def test_writers_that_race_lose_no_record() -> None:
    lake, storage, clock = memory_lake()
    plain(lake).ready()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            topic = plain(open_lake(storage, clock))
            for step in range(5):
                add_up(topic)
                topic.append([(f"{number}-{step}".encode(), b"at will")])
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    texts, taken = texts_and_offsets(plain(lake))
    assert texts == {"n": "20"} | {f"{number}-{step}": "at will" for number in range(4) for step in range(5)}
    assert taken == list(range(40))


def test_records_of_topics_without_order_go_by_their_keys() -> None:
    lake, storage, clock = memory_lake()
    topic = workers_topic(lake, "connect-offsets", 3, OffsetState)
    topic.append([offset_record("c", {"n": number}, {"o": number}) for number in range(20)])
    assert all(end > start for start, end in lake.offsets("connect-offsets").values())
    other = workers_topic(open_lake(storage, clock), "connect-offsets", 3, OffsetState)
    assert sorted(one["o"] for _, one in other.look(lambda state: state.of("c"))) == list(range(20))


@pytest.mark.parametrize(
    ("reader", "partitions", "config", "message"),
    [
        (
            RegistryLog,
            2,
            {"cleanup.policy": "compact"},
            "Topic '_schemas' has 2 partitions: a registry's log has one, which orders it. Give the registry another"
            " topic.",
        ),
        (
            RegistryLog,
            1,
            {},
            "Topic '_schemas' has not cleanup.policy=compact: schemas would be deleted by their age. Set"
            " cleanup.policy=compact.",
        ),
        (
            KINDS["configs"].reader,
            2,
            {"cleanup.policy": "compact"},
            "Topic 'connect-configs' has 2 partitions: it has one, which orders it. Give the workers another topic.",
        ),
        (
            KINDS["offsets"].reader,
            1,
            {},
            "Topic 'connect-offsets' has not cleanup.policy=compact: what workers need would be deleted by its age. Set"
            " cleanup.policy=compact.",
        ),
    ],
)
def test_a_topic_that_would_lose_records_is_refused(
    reader: Callable[[Lake], Any], partitions: int, config: dict[str, str], message: str
) -> None:
    lake, _, _ = memory_lake()
    lake.create_topic(message.split("'")[1], partitions, config)
    with pytest.raises(InvalidConfigError) as refused:
        reader(lake).look(json.dumps)
    assert str(refused.value) == message
