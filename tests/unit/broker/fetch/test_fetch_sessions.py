"""Fetch sessions by KIP-227: epochs, what is answered, what is served next, and which session has to go."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.fetch.requests import Asked, FetchRequest
from tidelog.broker.fetch.sessions import INVALID_SESSION_EPOCH, SESSION_ID_NOT_FOUND, Fetch, Sessions, change
from tidelog.broker.wire.fetch_answer import PartitionAnswer

NAMES = 12


def sessions(**bounds) -> Sessions:
    ids = count(101)
    return Sessions(lambda: next(ids), **bounds)


def asks(*partitions: int, session=0, epoch=0, offset=0, forget=(), version=NAMES) -> FetchRequest:
    asked = {("t", p): Asked(offset, 100) for p in partitions}
    return FetchRequest(version, asked, [("t", p) for p in forget], session, epoch)


def answers(fetch: Fetch, **by_partition) -> dict:
    """An answer for each partition asked for; `p1=...` for partition 1."""
    return {key: PartitionAnswer(key[1], **by_partition.get(f"p{key[1]}", {})) for key in fetch.asked}


def turn(found: Sessions, request: FetchRequest, now_s: float = 0.0, **by_partition) -> tuple[int, int, list[int]]:
    """(error code, session id, partitions answered)."""
    fetch = found.begin(request, now_s)
    if fetch.error_code:
        return fetch.error_code, 0, []
    error, session, keys = found.answered(fetch, answers(fetch, **by_partition), now_s)
    return error, session, [partition for _, partition in keys]


def test_a_request_without_a_session_gets_none() -> None:
    found = sessions()
    assert turn(found, asks(1, 2, epoch=-1)) == (0, 0, [1, 2])
    assert len(found) == 0


def test_a_session_answers_what_is_new() -> None:
    found = sessions()
    same = {"high_watermark": 5, "log_start_offset": 0}
    start = dict.fromkeys(("p1", "p2", "p3"), same)
    assert turn(found, asks(1, 2, 3), **start) == (0, 101, [1, 2, 3])
    assert turn(found, asks(session=101, epoch=1), **start) == (0, 101, [])
    news = [
        ({"records": [b"x"]}, [2]),
        ({"high_watermark": 6}, [2]),
        ({"high_watermark": 6}, []),
        ({"high_watermark": 6, "log_start_offset": 1}, [2]),
        ({"high_watermark": 6, "log_start_offset": 1, "preferred_read_replica": 4}, [2]),
        ({"high_watermark": 6, "log_start_offset": 1, "error_code": 6}, [2]),
        ({"high_watermark": 6, "log_start_offset": 1}, [2]),
        ({"high_watermark": 6, "log_start_offset": 1}, []),
    ]
    for epoch, (changed, expected) in enumerate(news, 2):
        assert turn(found, asks(session=101, epoch=epoch), **(start | {"p2": same | changed})) == (0, 101, expected)


def test_what_a_request_names_is_added_changed_and_forgotten() -> None:
    found = sessions()
    turn(found, asks(1, 2))
    fetch = found.begin(asks(2, 3, session=101, epoch=1, offset=7, forget=[1]), 0)
    assert fetch.asked == {("t", 2): Asked(7, 100), ("t", 3): Asked(7, 100)}


def test_what_was_served_comes_last_the_next_time() -> None:
    found = sessions()
    turn(found, asks(1, 2, 3))
    turn(found, asks(session=101, epoch=1), p1={"records": [b"x"]})
    assert [p for _, p in found.begin(asks(session=101, epoch=2), 0).asked] == [2, 3, 1]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asks(session=7, epoch=1), (70, 0, [])),
        (asks(session=101, epoch=2), (71, 0, [])),
        (asks(session=101, epoch=1, version=13), (106, 0, [])),
        (asks(session=101, epoch=1), (0, 101, [])),
    ],
)
def test_refusals(request_: FetchRequest, expected: tuple) -> None:
    found = sessions()
    turn(found, asks(1, 2))
    assert turn(found, request_) == expected
    assert len(found) == 1


def test_an_answer_that_comes_too_late_is_refused() -> None:
    found = sessions()
    turn(found, asks(1))
    slow = found.begin(asks(session=101, epoch=1), 0)
    turn(found, asks(session=101, epoch=2))
    assert found.answered(slow, answers(slow), 0) == (71, 0, ())


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_ends_the_session_that_it_names(epoch: int) -> None:
    found = sessions()
    turn(found, asks(1))
    assert turn(found, asks(1, session=101, epoch=epoch)) == (0, 102 if epoch == 0 else 0, [1])
    assert turn(found, asks(session=101, epoch=1)) == (70, 0, [])


def test_a_session_of_which_nothing_is_left_ends() -> None:
    found = sessions()
    turn(found, asks(1))
    assert turn(found, asks(session=101, epoch=1, forget=[1])) == (0, 0, [])
    assert len(found) == 0


def test_epochs_begin_again_at_1() -> None:
    found = sessions()
    turn(found, asks(1))
    found._sessions[101].epoch = 2**31 - 1
    assert turn(found, asks(session=101, epoch=2**31 - 1)) == (0, 101, [])
    assert turn(found, asks(session=101, epoch=1)) == (0, 101, [])


def test_a_stale_session_makes_room() -> None:
    found = sessions(most=2)
    turn(found, asks(1, 2), now_s=0)
    turn(found, asks(1, 2), now_s=10)
    turn(found, asks(session=101, epoch=1), now_s=20)
    assert turn(found, asks(1), now_s=130)[1] == 0  # none is stale for 120 s
    assert turn(found, asks(1), now_s=131)[1] == 103
    assert turn(found, asks(session=102, epoch=1), now_s=131) == (70, 0, [])


def test_a_larger_session_pushes_out_the_smallest_that_is_not_new() -> None:
    found = sessions(most=2)
    turn(found, asks(1, 2), now_s=0)
    turn(found, asks(1), now_s=0)
    for epoch in (1, 2):
        turn(found, asks(session=101, epoch=epoch), now_s=100 * epoch)
        turn(found, asks(session=102, epoch=epoch), now_s=100 * epoch)
    assert turn(found, asks(1), now_s=201)[1] == 0
    assert turn(found, asks(1, 2, 3), now_s=201)[1] == 103
    assert turn(found, asks(session=102, epoch=3), now_s=201) == (70, 0, [])
    assert turn(found, asks(session=101, epoch=3), now_s=201)[1] == 101


def test_all_sessions_together_are_bounded() -> None:
    found = sessions(most_partitions=3)
    assert turn(found, asks(1, 2))[1] == 101
    assert turn(found, asks(1, 2))[1] == 0
    assert turn(found, asks(1, 2, session=101, epoch=0))[1] == 102


def test_a_session_that_grows_beyond_the_bound_of_all_is_given_up() -> None:
    found = sessions(most_partitions=5)
    assert turn(found, asks(1, 2))[1] == 101
    assert turn(found, asks(1))[1] == 102
    assert turn(found, asks(1, 3, 4, session=101, epoch=1))[:2] == (0, 101)
    assert found.partitions == 5
    assert turn(found, asks(3, 4, session=101, epoch=2))[:2] == (0, 101)  # it has them
    assert turn(found, asks(2, session=102, epoch=1)) == (SESSION_ID_NOT_FOUND, 0, [])
    assert (len(found), found.partitions) == (1, 4)
    assert turn(found, asks(5, session=101, epoch=3, forget=(1, 2)))[:2] == (0, 101)
    assert found.partitions == 3
    assert turn(found, asks(*range(6), session=101, epoch=4)) == (SESSION_ID_NOT_FOUND, 0, [])
    assert (len(found), found.partitions) == (0, 0)


def test_sessions_end_with_their_connections() -> None:
    found = sessions()
    for owner in ("one", "one", "two"):
        fetch = found.begin(asks(1, 2), 0, owner)
        assert found.answered(fetch, answers(fetch), 0)[0] == 0
    fetch = found.begin(asks(session=101, epoch=1), 0, "two")  # its client has come back
    assert found.answered(fetch, answers(fetch), 0)[0] == 0
    found.forget("nobody")
    assert (len(found), found.partitions) == (3, 6)
    found.forget("one")
    assert (len(found), found.partitions) == (2, 4)
    assert found.begin(asks(session=102, epoch=1), 0, "two").error_code == SESSION_ID_NOT_FOUND
    found.forget("two")
    assert (len(found), found.partitions) == (0, 0)


def test_a_session_is_used_by_one_request_at_a_time() -> None:
    found = sessions()
    assert turn(found, asks(1, 2))[1] == 101
    request = asks(3, session=101, epoch=1)
    first = found.admit(request, 0)
    assert found.admit(asks(4, session=101, epoch=2), 0).error_code == INVALID_SESSION_EPOCH
    first = found.changed(change(first, request))
    second = found.begin(asks(4, session=101, epoch=2), 0)
    assert [p for _, p in second.asked] == [1, 2, 3, 4]
    assert found.answered(first, answers(first), 0)[0] == INVALID_SESSION_EPOCH


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=4), max_size=8))
def test_a_client_that_keeps_what_it_is_told_knows_all(rounds: list) -> None:
    """What a session leaves out, the client knows from before."""
    found, truth, known = sessions(), dict.fromkeys(range(5), 0), {}
    session = 0
    for epoch, changes in enumerate(rounds):
        truth.update(changes)
        fetch = found.begin(asks(*(range(5) if epoch == 0 else ()), session=session, epoch=epoch), 0)
        given_ = {key: PartitionAnswer(key[1], high_watermark=truth[key[1]]) for key in fetch.asked}
        error, session, keys = found.answered(fetch, given_, 0)
        assert error == 0
        known.update({key: given_[key].high_watermark for key in keys})
        assert known == {("t", p): hw for p, hw in truth.items()}
