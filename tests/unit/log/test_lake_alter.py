"""Changing a topic's configuration: wrong keys are refused, and two changes at once both count."""

import pytest
from support.logs import memory_lake, open_lake

from tidelog.log.base.errors import InvalidConfigError


def test_two_changes_at_once_both_count():
    others = []

    def interfere(method, path, phase):
        if others and method == "put_if_absent" and phase == "before":
            others.pop()()

    lake, storage, clock = memory_lake(interfere)
    lake.create_topic("orders")
    other = open_lake(storage, clock)
    others.append(lambda: other.alter_topic("orders", config={"segment.bytes": "1000"}))
    assert lake.alter_topic("orders", config={"retention.ms": "5"}).config == {
        "retention.ms": "5",
        "segment.bytes": "1000",
    }


@pytest.mark.parametrize("value", ["1", None])
def test_an_unknown_key_is_neither_set_nor_reset(value):
    lake, _, _ = memory_lake()
    lake.create_topic("orders")
    with pytest.raises(InvalidConfigError, match=r"nearest known one is 'retention\.ms'"):
        lake.alter_topic("orders", config={"retention.m": value})
