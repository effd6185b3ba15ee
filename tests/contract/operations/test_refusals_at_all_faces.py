"""Each operation through every face that has it: what is refused is refused alike, in the same words, and not done."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.admin_groups import stable_group
from support.faces import DONE, FACES, Broker, Face

from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.log.lake import Lake

ORDERS, BILLING, BUSY = "orders", "billing", "busy"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A topic of two partitions, a group that has an offset of it and no members, and one with a member that lives."""
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic(ORDERS, 2, {"retention.bytes": "1000000"})
        for partition in (0, 1):
            lake.topic(ORDERS).append([{"value": str(n), "partition": partition} for n in range(10)])
        GroupLog(lake).commit_offsets(BILLING, {(ORDERS, 0): CommittedOffset(4)})
        stable_group(lake, BUSY, {"m": [(ORDERS, 0)]})
        with _alive(lake, BUSY, "m"):
            yield lake.uri


@contextmanager
def _alive(lake: Lake, group: str, member: str) -> Iterator[None]:
    """Meanwhile the member shows life, many times in a session."""
    over = threading.Event()

    def beat() -> None:
        lease = Leases(lake.storage).of_member(group, member)
        while not over.wait(0.1):
            lease.renew()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def everything(address: str) -> Any:
    """All that an operation could change."""
    with Lake(address, create=False) as lake:
        topics = {name: (lake.describe_topic(name).config, lake.offsets(name)) for name in lake.topics()}
        views = GroupLog(lake).views()
    return topics, {name: (view.group, dict(view.offsets)) for name, view in views.items()}


REFUSALS: list[tuple[str, tuple[Any, ...], KafkaCode]] = [
    ("create_topic", (ORDERS, 1, {}), KafkaCode.TOPIC_ALREADY_EXISTS),
    ("create_topic", ("a" * 250, 1, {}), KafkaCode.INVALID_TOPIC_EXCEPTION),
    ("create_topic", ("new", 0, {}), KafkaCode.INVALID_PARTITIONS),
    ("create_topic", ("new", 1, {"no.such.key": "1"}), KafkaCode.INVALID_CONFIG),
    ("create_topic", ("new", 1, {"retention.ms": "soon"}), KafkaCode.INVALID_CONFIG),
    ("add_partitions", ("missing", 3), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("add_partitions", (ORDERS, 1), KafkaCode.INVALID_PARTITIONS),
    ("set_key", ("missing", "retention.ms", "1"), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("set_key", (ORDERS, "retention.ms", "soon"), KafkaCode.INVALID_CONFIG),
    ("set_key", (ORDERS, "no.such.key", "1"), KafkaCode.INVALID_CONFIG),
    ("set_key", (ORDERS, "flush.ms", "1"), KafkaCode.INVALID_CONFIG),
    ("delete_topic", ("missing",), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("describe_topic", ("missing",), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("delete_records", ("missing", 0, 1), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("delete_records", (ORDERS, 9, 1), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("delete_records", (ORDERS, 0, 11), KafkaCode.OFFSET_OUT_OF_RANGE),
    ("describe_group", ("missing",), KafkaCode.GROUP_ID_NOT_FOUND),
    ("delete_group", ("missing",), KafkaCode.GROUP_ID_NOT_FOUND),
    ("delete_group", (BUSY,), KafkaCode.NON_EMPTY_GROUP),
    ("set_offset", (BILLING, "missing", 0, 1), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("set_offset", (BILLING, ORDERS, 9, 1), KafkaCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("set_offset", (BUSY, ORDERS, 0, 1), KafkaCode.UNKNOWN_MEMBER_ID),
    ("delete_offset", ("missing", ORDERS, 0), KafkaCode.GROUP_ID_NOT_FOUND),
    ("delete_offset", (BUSY, ORDERS, 0), KafkaCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ("describe_transaction", ("missing",), KafkaCode.TRANSACTIONAL_ID_NOT_FOUND),
    ("abort_transaction", ("missing",), KafkaCode.TRANSACTIONAL_ID_NOT_FOUND),
]
# A broker may be asked for -1 partitions, which is no wrong number there: it says so in Kafka's words.
IN_KAFKAS_WORDS = [("create_topic", ("new", 0, {}))]


def _with(operation: str) -> list[type[Face]]:
    return [face for face in FACES if face.has(operation)]


@pytest.mark.parametrize(("operation", "given", "code"), REFUSALS)
def test_what_is_refused_is_refused_alike(
    operation: str, given: tuple[Any, ...], code: KafkaCode, address: str
) -> None:
    before = everything(address)
    answers = {face.__name__: getattr(face(address), operation)(*given) for face in _with(operation)}
    codes = {name: answer.code for name, answer in answers.items() if answer.code is not None}
    assert codes == dict.fromkeys(codes, int(code))
    sentences = {name: answer.sentence for name, answer in answers.items() if answer.sentence is not None}
    if (operation, given) in IN_KAFKAS_WORDS:
        assert "non-positive" in (sentences.pop(Broker.__name__) or "")
    assert len(set(sentences.values())) == 1, sentences
    assert everything(address) == before


@pytest.mark.parametrize("face", _with("set_offset"))
def test_a_groups_offset_set_by_any_face_is_the_same(face: type[Face], address: str) -> None:
    assert face(address).set_offset(BILLING, ORDERS, 1, 3) == DONE
    with Lake(address, create=False) as lake:
        offsets = GroupLog(lake).offsets(BILLING)
    assert {place: committed.offset for place, committed in offsets.items()} == {(ORDERS, 0): 4, (ORDERS, 1): 3}


@pytest.mark.parametrize("face", _with("delete_offset"))
def test_a_groups_offset_deleted_by_any_face_is_gone(face: type[Face], address: str) -> None:
    assert face(address).delete_offset(BILLING, ORDERS, 0) == DONE
    with Lake(address, create=False) as lake:
        assert GroupLog(lake).offsets(BILLING) == {}


@pytest.mark.parametrize("face", _with("delete_group"))
def test_a_group_deleted_by_any_face_is_gone(face: type[Face], address: str) -> None:
    assert face(address).delete_group(BILLING) == DONE
    with Lake(address, create=False) as lake:
        assert list(GroupLog(lake).views()) == [BUSY]


@pytest.mark.parametrize("face", _with("delete_records"))
def test_records_deleted_by_any_face_are_gone(face: type[Face], address: str) -> None:
    assert face(address).delete_records(ORDERS, 0, 4) == DONE
    with Lake(address, create=False) as lake:
        assert lake.offsets(ORDERS) == {0: (4, 10), 1: (0, 10)}


def test_most_operations_are_asked_for_at_several_faces() -> None:
    assert {operation: len(_with(operation)) for operation, *_ in REFUSALS if len(_with(operation)) < 2} == {}
