"""What a quota counts of a request, and what its answer says."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from kio.schema.errors import ErrorCode
from support.broker_connections import FakeClock
from support.broker_requests import SETTINGS

from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.broker.access import throttling
from tidelog.broker.access.throttling import MOST_ENTITIES, Throttling, counted
from tidelog.broker.base.calls import Call, Encoded, Peer
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.messages import encode, has_throttle_time
from tidelog.server.base.blocking import in_threads

PEER = Peer(principal="User:alice")
OF_ALICE = Entity("alice")


def throttling_by(clock, limits, **settings):
    return Throttling(lambda: limits, clock, SETTINGS.quotas, **settings)


def versions(*keys):
    return [(key, version) for key in keys for version in range(OFFERED[key].first, OFFERED[key].last + 1)]


# --- the answer --------------------------------------------------------------------------------------------


def told_ms(answer):
    return answer.throttle_time.total_seconds() * 1000


def asked(requests, key, version, body, throttled):
    return requests.loop.run_until_complete(requests.answer(key, version, body, throttled=throttled))


@pytest.mark.parametrize(
    ("key", "version"),
    versions(ApiKey.FETCH, ApiKey.LIST_GROUPS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER),
)
def test_every_answer_that_can_says_how_long_its_client_has_to_wait(requests, key, version):
    limits = {OF_ALICE: {Quota.REQUEST_PERCENTAGE: 1.0}}
    elapsed = iter(range(100))
    one = throttling_by(FakeClock(), limits, processor_s=lambda: next(elapsed) / 10).request(
        key, version, PEER, "app", 100
    )
    answer = asked(requests, key, version, {"max_wait": 0}, one)
    if hasattr(answer, "throttle_time"):
        assert told_ms(answer) >= 900


@pytest.mark.parametrize("version", [one for _, one in versions(ApiKey.PRODUCE)])
@pytest.mark.parametrize("topic", ["there", "missing"])
def test_the_answer_of_produce_says_it_too(requests, lake, version, topic):
    """With the leaders that newer versions name, and without."""
    lake.create_topic("there")
    one = throttling_by(FakeClock(), {OF_ALICE: {Quota.PRODUCER_BYTE_RATE: 100.0}}).request(
        ApiKey.PRODUCE, version, PEER, None, 150
    )
    body = {"acks": -1, "timeout": 1000, "topic_data": [{"name": topic, "partition_data": [{"index": 0}]}]}
    assert told_ms(asked(requests, ApiKey.PRODUCE, version, body, one)) == 500


def test_apis_whose_answers_have_no_throttle_time_are_left_as_they_are():
    without = {key for key in OFFERED if not has_throttle_time(key)}
    assert ApiKey.DESCRIBE_QUORUM in without
    assert ApiKey.PRODUCE not in without
    reply = {"error_code": 0, "error_message": None, "topics": (), "nodes": ()}
    told = throttling._with_throttle_time(reply, ApiKey.DESCRIBE_QUORUM, 500)
    assert encode(ApiKey.DESCRIBE_QUORUM, 2, told) == encode(ApiKey.DESCRIBE_QUORUM, 2, reply)


def test_what_a_cache_keeps_is_not_changed():
    kept = Encoded([bytes(8), b"records"], throttle_at=0)
    told = throttling._with_throttle_time(kept, ApiKey.FETCH, 7)
    assert told.pieces == [bytes([0, 0, 0, 7]) + bytes(4), b"records"]
    assert kept.pieces == [bytes(8), b"records"]


def test_brokers_ask_each_other_without_a_quota():
    one = throttling_by(FakeClock(), {Entity(DEFAULT): {Quota.REQUEST_PERCENTAGE: 1.0}})
    assert one.request(ApiKey.HAND_OVER, 0, PEER, None, 100) is None
    assert one.request(ApiKey.METADATA, 0, PEER, None, 100) is not None
    assert throttling_by(FakeClock(), {}).request(ApiKey.METADATA, 0, PEER, None, 100) is None


def test_an_answer_without_records_does_not_count():
    clock = FakeClock()
    all_ = throttling_by(clock, {OF_ALICE: {Quota.CONSUMER_BYTE_RATE: 100.0}})

    async def fetched(call):
        return Encoded([bytes(300 if call.allowance.most_bytes else 90)], throttle_at=0)

    def fetch():
        one = all_.request(ApiKey.FETCH, 4, PEER, None, 50)
        asyncio.run(one.run(fetched, Call(ApiKey.FETCH, 4, None, None, PEER, clock.now_s, one)))
        return one.until_s - clock.now_s

    assert fetch() == 2.0
    assert fetch() == 2.0
    clock.now_s += 2.0
    assert fetch() == 3.0


def test_limits_that_change_hold_at_once():
    limits = {}
    all_ = Throttling(lambda: limits, FakeClock(), SETTINGS.quotas)
    assert all_.request(ApiKey.PRODUCE, 9, PEER, None, 100) is None
    limits = {OF_ALICE: {Quota.PRODUCER_BYTE_RATE: 10.0}}
    assert all_.request(ApiKey.PRODUCE, 9, PEER, None, 110).until_s == 1010.0
    limits = {OF_ALICE: {Quota.PRODUCER_BYTE_RATE: 1000.0}}
    assert all_.request(ApiKey.PRODUCE, 9, PEER, None, 10).until_s == pytest.approx(1000.11)
    limits = {Entity("bob"): {Quota.PRODUCER_BYTE_RATE: 1.0}}
    assert all_.request(ApiKey.PRODUCE, 9, PEER, None, 10_000).until_s == 0


# --- memory ------------------------------------------------------------------------------------------------


def test_clients_that_come_and_go_are_forgotten():
    clock = FakeClock()
    all_ = throttling_by(clock, {Entity(None, DEFAULT): {Quota.PRODUCER_BYTE_RATE: 1000.0}})
    for number in range(1000):
        all_.request(ApiKey.PRODUCE, 9, PEER, f"client-{number}", 10)
        clock.now_s += 0.1
    assert len(all_.meters()) == 111  # those of the last 11 s


def test_a_client_that_is_over_its_quota_is_not_forgotten():
    clock = FakeClock()
    all_ = throttling_by(clock, {Entity(None, DEFAULT): {Quota.PRODUCER_BYTE_RATE: 1.0}})
    all_.request(ApiKey.PRODUCE, 9, PEER, "greedy", 1001)
    clock.now_s += 500
    all_.request(ApiKey.PRODUCE, 9, PEER, "other", 1)
    assert all_.request(ApiKey.PRODUCE, 9, PEER, "greedy", 0).until_s == pytest.approx(clock.now_s + 500)


def test_more_clients_than_there_is_room_for_push_out_the_longest_silent():
    all_ = throttling_by(FakeClock(), {Entity(None, DEFAULT): {Quota.PRODUCER_BYTE_RATE: 1.0}})
    for number in range(MOST_ENTITIES + 10):
        all_.request(ApiKey.PRODUCE, 9, PEER, f"client-{number}", 10)
    assert len(all_.meters()) == MOST_ENTITIES
    names = [entity.client_id for _, entity in all_.meters()]
    assert (names[0], names[-1]) == ("client-10", f"client-{MOST_ENTITIES + 9}")
    assert len(all_._found) <= 10_000


# --- changes of partitions ---------------------------------------------------------------------------------


def topic(name, count=1):
    return {"name": name, "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": []}


def creation(*topics):
    return {"topics": topics, "timeout": 1000}


@pytest.fixture
def mutations():
    """Requests of a client that may change 1 partition a second, 11 at once."""
    clock = FakeClock()
    all_ = throttling_by(clock, {OF_ALICE: {Quota.CONTROLLER_MUTATION_RATE: 1.0}})
    return clock, lambda key, version: all_.request(key, version, PEER, None, 100)


def test_new_topics_above_the_quota_are_refused_and_those_below_are_made(requests, lake, mutations):
    clock, one = mutations
    key = ApiKey.CREATE_TOPICS
    body = creation(topic("a", 8), topic("b", 5), topic("c", 1))
    answer = asked(requests, key, 7, body, one(key, 7))
    codes = {found.name: found.error_code for found in answer.topics}
    # The bucket may be overdrawn once: b takes what is not there, and c has to wait for it.
    assert codes == {"a": ErrorCode.none, "b": ErrorCode.none, "c": ErrorCode.throttling_quota_exceeded}
    assert "controller_mutation_rate" in answer.topics[2].error_message
    assert told_ms(answer) == 2000
    assert (lake.peek("b") is not None, lake.peek("c")) == (True, None)
    clock.now_s += 2
    answer = asked(requests, key, 7, creation(topic("c")), one(key, 7))
    assert answer.topics[0].error_code == ErrorCode.none


@pytest.mark.parametrize(("version", "refused"), [(5, False), (6, True)])
def test_clients_that_do_not_know_the_error_wait_instead(requests, lake, mutations, version, refused):
    _, one = mutations
    key = ApiKey.CREATE_TOPICS
    asked(requests, key, version, creation(topic("a", 12)), one(key, version))
    answer = asked(requests, key, version, creation(topic("b", 3)), one(key, version))
    assert (lake.peek("b") is None) == refused
    assert (answer.topics[0].error_code is ErrorCode.throttling_quota_exceeded) == refused
    assert told_ms(answer) == (1000 if refused else 4000)


def test_partitions_that_are_deleted_and_added_count_too(requests, lake, mutations):
    _, one = mutations
    lake.create_topic("a", 8)
    key = ApiKey.CREATE_PARTITIONS
    grown = {"topics": [{"name": "a", "count": 12, "assignments": None}], "timeout": 1000}
    assert told_ms(asked(requests, key, 3, grown, one(key, 3))) == 0
    key = ApiKey.DELETE_TOPICS
    answer = asked(requests, key, 6, {"topics": [{"name": "a", "topic_id": None}], "timeout": 1000}, one(key, 6))
    assert (answer.responses[0].error_code, told_ms(answer)) == (ErrorCode.none, 5000)
    lake.create_topic("b")
    answer = asked(requests, key, 5, {"topic_names": ["b"], "timeout": 1000}, one(key, 5))
    assert answer.responses[0].error_code == ErrorCode.throttling_quota_exceeded
    answer = asked(requests, key, 4, {"topic_names": ["b"], "timeout": 1000}, one(key, 4))
    assert (answer.responses[0].error_code, told_ms(answer)) == (ErrorCode.none, 6000)


def test_topics_that_are_created_on_the_way_are_counted_and_not_refused(requests, lake, mutations):
    _, one = mutations
    lake.alter_config({"num.partitions": "20"})
    key = ApiKey.METADATA
    body = {"topics": [{"name": "a"}], "allow_auto_topic_creation": True}
    answer = asked(requests, key, 9, body, one(key, 9))
    assert (len(answer.topics[0].partitions), told_ms(answer)) == (20, 9000)


# --- processor time ----------------------------------------------------------------------------------------


class Processor:
    """A processor's clock of each thread, which work moves on."""

    def __init__(self):
        self.used = threading.local()

    def __call__(self):
        return getattr(self.used, "s", 0.0)

    def work(self, seconds):
        self.used.s = self() + seconds


def percent_of(handler, processor):
    """For how many seconds a client has to wait that may use 100 % of a processor, after one request."""
    clock = FakeClock()
    all_ = throttling_by(clock, {OF_ALICE: {Quota.REQUEST_PERCENTAGE: 100.0}}, processor_s=processor)
    one = all_.request(ApiKey.METADATA, 9, PEER, None, 10)
    reply = asyncio.run(one.run(handler, Call(ApiKey.METADATA, 9, None, None, PEER, clock.now_s, one)))
    assert reply is None
    return max(0.0, one.until_s - clock.now_s)


def test_the_steps_of_a_handler_count_and_what_others_do_in_between_does_not():
    processor = Processor()

    async def handler(call):
        processor.work(1.5)
        loop = asyncio.get_running_loop()
        loop.call_soon(processor.work, 100)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        processor.work(0.75)

    assert percent_of(handler, processor) == pytest.approx(1.25)


def test_what_threads_do_for_a_request_counts():
    processor = Processor()

    async def handler(call):
        with ThreadPoolExecutor(1) as threads:
            await counted(in_threads(threads), processor)(processor.work, 2.5)

    assert percent_of(handler, processor) == pytest.approx(1.5)


def test_a_call_that_is_run_at_once_counts_once():
    processor = Processor()

    async def at_once(call, /, *args):
        return call(*args)

    async def handler(call):
        await counted(at_once, processor)(processor.work, 2.5)

    assert percent_of(handler, processor) == pytest.approx(1.5)


def test_what_a_handler_leaves_behind_counts_for_no_request():
    """A pool that is begun by a request goes on for others, for ever."""
    processor, begun = Processor(), []

    async def at_once(call, /, *args):
        begun.append(call)
        return call(*args)

    blocking = counted(at_once, processor)

    async def scenario():
        clock = FakeClock()
        all_ = throttling_by(clock, {OF_ALICE: {Quota.REQUEST_PERCENTAGE: 100.0}}, processor_s=processor)
        go_on, left = asyncio.Event(), []

        async def pool():
            await go_on.wait()
            await blocking(processor.work, 5)

        async def handler(call):
            left.append(asyncio.ensure_future(pool()))
            await blocking(processor.work, 1)

        one = all_.request(ApiKey.METADATA, 9, PEER, None, 10)
        await one.run(handler, Call(ApiKey.METADATA, 9, None, None, PEER, 0.0, one))
        go_on.set()
        await left[0]

    asyncio.run(scenario())
    assert begun[0] != processor.work  # it is counted
    assert begun[1] == processor.work


def test_a_client_waits_for_its_share_of_the_processor_all_windows_at_most():
    processor = Processor()

    async def handler(call):
        processor.work(1000)

    assert percent_of(handler, processor) == 11


def test_a_counted_handler_fails_and_is_cancelled_as_any_other():
    all_ = throttling_by(FakeClock(), {OF_ALICE: {Quota.REQUEST_PERCENTAGE: 1.0}})
    ended = []

    async def failing(call):
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def waiting(call):
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)

    async def scenario():
        one = all_.request(ApiKey.METADATA, 9, PEER, None, 10)
        call = Call(ApiKey.METADATA, 9, None, None, PEER, 0.0, one)
        with pytest.raises(ZeroDivisionError):
            await one.run(failing, call)
        task = asyncio.ensure_future(one.run(waiting, call))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert ended == [True]
