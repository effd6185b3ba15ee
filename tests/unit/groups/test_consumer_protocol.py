"""The bytes that consumers of a group exchange: written out by hand from Kafka's message descriptions, and back."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.groups.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
    subscribed_topics,
)
from tidelog.log.base.errors import InconsistentProtocolError

FULL = Subscription(("b", "a"), b"ud", (("a", 1), ("a", 0), ("b", 2)), 5, "r1")
TOPICS = "00000002 0001 61 0001 62"
OWNED = "00000002 0001 61 00000002 00000000 00000001 0001 62 00000001 00000002"
SUBSCRIPTIONS = {
    0: f"0000 {TOPICS} 00000002 7564",
    1: f"0001 {TOPICS} 00000002 7564 {OWNED}",
    2: f"0002 {TOPICS} 00000002 7564 {OWNED} 00000005",
    3: f"0003 {TOPICS} 00000002 7564 {OWNED} 00000005 0002 7231",
}


@pytest.mark.parametrize(("version", "expected"), SUBSCRIPTIONS.items())
def test_a_subscription_in_every_version(version: int, expected: str) -> None:
    data = bytes.fromhex(expected)
    found = decode_subscription(data)
    owned = (("a", 0), ("a", 1), ("b", 2)) if version >= 1 else ()
    assert found == Subscription(("a", "b"), b"ud", owned, 5 if version >= 2 else -1, "r1" if version >= 3 else None)
    assert subscribed_topics(data) == {"a", "b"}


def test_the_newest_version_is_written() -> None:
    assert encode_subscription(FULL) == bytes.fromhex(SUBSCRIPTIONS[3])


def test_nothing_is_null_or_empty() -> None:
    data = bytes.fromhex("0003 00000000 ffffffff 00000000 ffffffff ffff")
    assert encode_subscription(Subscription(())) == data
    assert decode_subscription(data) == Subscription(())


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    data = b"\0\7" + encode_subscription(FULL)[2:] + b"more"
    assert decode_subscription(data).generation == 5
    assert decode_assignment(b"\0\7" + encode_assignment(Assignment((("t", 1),)))[2:] + b"more").partitions == (
        ("t", 1),
    )


def test_an_assignment() -> None:
    data = bytes.fromhex("0003 00000002 0001 62 00000002 00000003 00000001 0001 61 00000001 00000000 ffffffff")
    given = Assignment((("b", 3), ("a", 0), ("b", 1)))
    assert encode_assignment(given) == data
    assert decode_assignment(data) == Assignment((("b", 3), ("b", 1), ("a", 0)))
    assert decode_assignment(b"\0\0" + data[2:]) == decode_assignment(data)
    assert decode_assignment(b"") == Assignment()


def test_what_sticky_remembers() -> None:
    data = bytes.fromhex("00000001 0001 74 00000002 00000000 00000002 00000009")
    assert encode_sticky_user_data([("t", 2), ("t", 0)], 9) == data
    assert decode_sticky_user_data(data) == ((("t", 0), ("t", 2)), 9)
    assert decode_sticky_user_data(data[:-4]) == ((("t", 0), ("t", 2)), -1)  # before Kafka 2.3
    for unreadable in (None, b"", b"\xff", b"\0\0\0\7", data[:-6]):
        assert decode_sticky_user_data(unreadable) == ((), -1)
    assert encode_cooperative_user_data(9) == bytes.fromhex("00000009")


names = st.text(st.characters(codec="utf-8"), max_size=8)
partitions = st.sets(st.tuples(names, st.integers(0, 2**31 - 1)), max_size=8).map(lambda s: tuple(sorted(s)))


@given(
    st.sets(names, max_size=5), st.none() | st.binary(), partitions, st.integers(-1, 2**31 - 1),
    st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
)  # fmt: skip
def test_all_comes_back(
    topics: set[str], user_data: bytes | None, owned: tuple[tuple[str, int], ...], generation: int, rack: str | None
) -> None:
    subscription = Subscription(tuple(sorted(topics)), user_data, owned, generation, rack)
    assert decode_subscription(encode_subscription(subscription)) == subscription
    assert decode_assignment(encode_assignment(Assignment(owned, user_data))) == Assignment(owned, user_data)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment, subscribed_topics):
        with suppress(InconsistentProtocolError):
            decode(data)


def test_every_cut_is_refused() -> None:
    whole = encode_subscription(FULL)
    for end in range(len(whole)):
        with pytest.raises(InconsistentProtocolError):
            decode_subscription(whole[:end])
