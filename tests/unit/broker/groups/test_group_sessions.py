"""Members that fall silent, by a clock that tests set: a session is over when its time is, for DeleteGroups too."""

from dataclasses import replace

import pytest
from support.broker_connections import FakeClock

from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake

SESSION_MS = 6000
TICK_S = 0.125


@pytest.fixture
def lake(tmp_path):
    """By a clock that a coordinator may ask amid a decision."""
    with Lake(str(tmp_path), clock=FakeClock()) as lake:
        yield lake


@pytest.fixture
def coordinator(requests):
    object.__setattr__(requests.broker._context.settings.groups, "initial_rebalance_delay_ms", 0)
    return requests.broker.handlers[ApiKey.DELETE_GROUPS].__wrapped__.__self__._coordinator


@pytest.fixture
def ticking(lake, requests, coordinator):
    """Lets time pass as a broker sees it, tick by tick."""

    async def ticks(seconds):
        while seconds > 0:
            lake.clock.sleep(min(TICK_S, seconds))
            if seconds >= TICK_S:
                coordinator.tick()
                await coordinator.decisions.finish()
            seconds -= TICK_S

    def passes(seconds):
        requests.loop.run_until_complete(ticks(seconds))

    return passes


def deleted(requests):
    (result,) = requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]}).results
    return int(result.error_code)


def join(requests, version=5, instance_id="i"):
    body = {
        "group_id": "g",
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
        "member_id": "",
        "group_instance_id": instance_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    assert requests.ask(ApiKey.JOIN_GROUP, version, body).error_code == 0


def test_a_static_member_that_was_closed_is_gone_when_its_session_is_over(lake, requests, ticking):
    """It does not leave (KIP-345). Tools that wait for its session and then delete the group find it empty."""
    join(requests)
    ticking(5.9375)
    assert deleted(requests) == 68, "NON_EMPTY_GROUP"
    ticking(0.0625)
    assert deleted(requests) == 0
    assert deleted(requests) == 69, "GROUP_ID_NOT_FOUND"


@pytest.mark.parametrize(("version", "instance_id"), [(5, "i"), (3, None)], ids=["static", "old"])
def test_a_member_whose_join_takes_longer_than_a_tick_has_a_session(
    monkeypatch, requests, coordinator, ticking, version, instance_id
):
    """Nothing else is known of its group until then. Its coordinator keeps the group all the same."""
    decide = coordinator.log.decide_all

    def slow(*args):
        coordinator.tick()
        return decide(*args)

    with monkeypatch.context() as patched:
        patched.setattr(coordinator.log, "decide_all", slow)
        join(requests, version, instance_id)
    ticking(6.125)
    assert deleted(requests) == 0


def test_members_that_another_coordinator_may_have_heard_have_a_full_session(requests, coordinator, ticking):
    """The broker was taken for dead and is back: the group was another's in between, which it did not see."""
    join(requests)
    ticking(4.0)
    view = coordinator._context.cluster()
    later = replace(view, epoch=view.epoch + 2)
    # The context is frozen, and so are the coordinator's views of it.
    object.__setattr__(coordinator._context, "cluster", lambda: later)
    object.__setattr__(coordinator._context, "confirmed", lambda: later)
    ticking(6.0)
    assert deleted(requests) == 68, "NON_EMPTY_GROUP"
    ticking(0.25)
    assert deleted(requests) == 0


def test_a_member_whose_eviction_is_being_written_gets_no_heartbeat_answered(lake, requests, coordinator):
    """Its store may answer seconds later: a heartbeat waits for that."""
    join(requests)
    group = coordinator._groups["g"]
    (member_id,) = group.state.members
    beat = {"group_id": "g", "generation_id": group.state.generation, "member_id": member_id}

    async def fall_silent():
        lake.clock.sleep(6.0)
        coordinator.evict(group, {member_id: group.state.members[member_id].turn})
        return await requests.answer(ApiKey.HEARTBEAT, 0, beat)

    assert requests.loop.run_until_complete(fall_silent()).error_code == 25, "UNKNOWN_MEMBER_ID"
    assert not group.leaves


def test_members_have_longer_for_an_answer_while_the_loop_is_late(lake, requests, coordinator):
    """librdkafka gives a heartbeat its interval, then it begins with a new connection, and may be fenced."""
    lake.create_topic("t", 1)
    body = {"group_id": "g", "member_id": "a", "member_epoch": 0, "rebalance_timeout": SESSION_MS}
    joins = body | {"subscribed_topic_names": ["t"], "topic_partitions": []}
    epoch = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, joins).member_epoch

    def interval_s():
        answer = requests.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body | {"member_epoch": epoch})
        return answer.heartbeat_interval.total_seconds()

    def ticks(every_s, count):
        async def run():
            for _ in range(count):
                lake.clock.sleep(every_s)
                coordinator.tick()

        requests.loop.run_until_complete(run())

    ticks(0.1, 1)
    assert interval_s() == 0.5
    ticks(0.5, 1)
    assert interval_s() == pytest.approx(3.2)
    ticks(0.1, 300)
    assert interval_s() == 0.5
