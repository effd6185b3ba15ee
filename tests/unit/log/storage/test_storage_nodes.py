"""A store of several nodes: where one is away another is asked, and what one does not have a second is asked for."""

import re
from collections.abc import Sequence

import pytest
from support.small_s3 import SmallS3, options_of, small_nodes, small_s3

from tidelog.log.base.errors import (
    InvalidConfigError,
    ObjectNotFoundError,
    StoragePermissionError,
    StorageUnavailableError,
)
from tidelog.log.storage import ObjectStorage, open_storage
from tidelog.log.storage.port import asks_two
from tidelog.spark.s3a import s3a_settings

URI = "s3://bucket/lake"
ALL = re.compile("")


def opened(nodes: Sequence[SmallS3], **more: str) -> ObjectStorage:
    storage = open_storage(URI, options_of(nodes, **{"retry_timeout_ms": "1", **more}))
    assert isinstance(storage, ObjectStorage)
    return storage


def test_another_node_stands_in_for_one_that_is_away():
    with small_nodes() as nodes:
        storage = opened(nodes)
        for away in range(3):
            for number, node in enumerate(nodes):
                node.away = number == away
            assert storage.put_if_absent(f"a/{away}", b"one")
            assert not storage.put_if_absent(f"a/{away}", b"two")
            storage.put(f"b/{away}", b"three")
            assert (storage.get(f"a/{away}"), storage.head(f"b/{away}").size) == (b"one", 5)
            with storage.open(f"b/{away}") as file:
                assert file.read() == b"three"
            assert [found.path for found in storage.list_after("a")] == [f"a/{i}" for i in range(away + 1)]
            storage.delete(f"b/{away}")


def test_a_process_stays_with_the_node_that_answered():
    with small_nodes() as nodes:
        storage = opened(nodes)
        storage.put("a", b"")
        (at,) = [node for node in nodes if node.seen]
        at.away = True
        storage.put("a", b"")
        at.away = False
        before = len(at.seen)
        for _ in range(5):
            storage.put("a", b"")
        assert len(at.seen) == before


def test_without_any_node_a_call_fails_and_says_that_its_outcome_is_open():
    with small_nodes() as nodes:
        storage = opened(nodes)
        for node in nodes:
            node.away = True
        with pytest.raises(StorageUnavailableError, match="may or may not have happened"):
            storage.put_if_absent("a", b"")
        with pytest.raises(StorageUnavailableError):
            list(storage.list_after("a"))
        assert all(node.seen for node in nodes)


def test_all_nodes_are_asked_again_until_the_time_is_up():
    with small_nodes() as nodes:
        storage = opened(nodes, retry_timeout_ms="20000")
        for node in nodes:
            node.away = True
        real = nodes[0].permits

        class Back(list[str]):
            def append(self, line: str) -> None:
                super().append(line)
                nodes[0].away = len(self) < 3  # it is back when it is asked for the third time

        nodes[0].seen = Back()
        storage.put("a", b"data")
        assert nodes[0].permits is real
        assert (storage.get("a"), len(nodes[0].seen) >= 3) == (b"data", True)


@pytest.mark.parametrize("missing", range(3))
def test_what_one_node_misses_is_asked_of_another(missing: int):
    with small_nodes() as nodes:
        storage = opened(nodes)
        assert asks_two(storage)
        storage.put("log/1", b"one")
        storage.put("log/folder/2", b"two")
        nodes[missing].misses = ALL
        for _ in range(3):
            assert storage.get("log/1") == b"one"
            assert storage.head("log/1").size == 3
            assert storage.open("log/1").read() == b"one"
            assert [found.path for found in storage.list_after("log")] == ["log/1"]
            assert [found.path for found in storage.list_after("log", "0")] == ["log/1"]
            assert storage.list_folders("log") == ["folder"]
            storage._nodes.leave(storage._nodes.current)


def test_one_node_s_word_is_that_of_get_from_one():
    with small_nodes() as nodes:
        storage = opened(nodes)
        storage.put("a", b"data")
        for node in nodes:
            node.misses = ALL
        nodes[(storage._nodes.at + 1) % 3].misses = None
        with pytest.raises(ObjectNotFoundError):
            storage.get_from_one("a")
        assert storage.get("a") == b"data"


def test_what_two_nodes_miss_is_not_there():
    with small_nodes() as nodes:
        storage = opened(nodes)
        with pytest.raises(ObjectNotFoundError):
            storage.get("a")
        assert sum(len(node.seen) for node in nodes) == 2


def test_with_one_node_left_its_word_counts():
    with small_nodes(2) as nodes:
        storage = opened(nodes)
        nodes[0].away = True
        with pytest.raises(ObjectNotFoundError):
            storage.get("a")
        assert list(storage.list_after("a")) == []


def test_a_refusal_after_no_answer_leaves_the_outcome_open():
    with small_nodes(2) as nodes:
        storage = opened(nodes)
        at = storage._nodes.at
        nodes[at].away = True
        nodes[1 - at].permits = lambda _action, _resource: False
        with pytest.raises(StorageUnavailableError):
            storage.put("a", b"")
        with pytest.raises(StoragePermissionError):
            storage.get("a")


def test_an_upload_that_fails_lets_the_next_one_go_to_another_node():
    with small_nodes() as nodes:
        storage = opened(nodes)
        nodes[storage._nodes.at].away = True
        with pytest.raises(StorageUnavailableError), storage.create("large") as file:
            file.write(b"data")
        with storage.create("large") as file:
            file.write(b"data")
        assert storage.get("large") == b"data"


def test_other_engines_get_the_node_that_answered():
    with small_nodes() as nodes:
        storage = opened(nodes)
        for keeps in range(3):
            for number, node in enumerate(nodes):
                node.away = number != keeps
            storage.put("a", b"")
            assert storage.engine_options()["endpoint"] == nodes[keeps].url


def test_s3a_gets_the_first_node():
    listed = {"lake.s3.endpoint": "http://one:9000, http://two:9000"}
    assert s3a_settings(listed, {})["fs.s3a.endpoint"] == "http://one:9000"


def test_one_node_alone_is_asked_once():
    with small_s3() as s3:
        storage = open_storage(URI, s3.options)
        assert not asks_two(storage)
        with pytest.raises(ObjectNotFoundError):
            storage.get("a")
        assert len(s3.seen) == 1


def test_nodes_speak_tls_all_or_none():
    with pytest.raises(InvalidConfigError, match="all http or https"):
        open_storage(URI, {"lake.s3.endpoint": "http://one:9000,https://two:9000", "lake.s3.region": "r"})


def test_each_node_is_a_way_to_the_store():
    with small_nodes() as nodes:
        ways = opened(nodes).by_address()
        for way in ways:
            way.put("a", b"")
        assert [len(node.seen) for node in nodes] == [1, 1, 1]
