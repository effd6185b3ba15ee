"""Quotas on connections, by a virtual clock: clients are held to their rate, and the others notice nothing."""

import asyncio
import struct
from collections import Counter

import pytest
from support.broker_connections import Client, FakeClock, Handler, connections, request, settle
from support.virtual_loop import run_virtually

from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.broker.base.calls import Encoded
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, encode_fetch
from tidelog.broker.wire.produce_answer import produce_answer, throttle_at
from tidelog.server.base.blocking import pause

PRODUCE, FETCH, LIST_GROUPS = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_GROUPS
LIMIT = 500_000
EVERYBODY = Entity(DEFAULT)
PRODUCE_VERSION, FETCH_VERSION = 3, 4


def produce(correlation_id, size, acks=1):
    """A request of about `size` bytes, most of them its transactional id."""
    name = struct.pack(">h", min(size, 32_000)) + b"x" * min(size, 32_000)
    return request(PRODUCE, PRODUCE_VERSION, correlation_id, name + struct.pack(">hii", acks, 1000, 0))


def fetch(correlation_id, max_bytes=50_000_000):
    return request(FETCH, FETCH_VERSION, correlation_id, struct.pack(">iiiibi", -1, 500, 1, max_bytes, 0, 0))


async def appended(call):
    answer = produce_answer(call.version, [])
    return Encoded([answer], throttle_at=throttle_at(call.version, answer)) if call.body.acks else None


class Records:
    """A handler of Fetch that has always as much as it may answer, in batches. `answers`: the bytes of each."""

    def __init__(self, batch=16_384):
        self.batch = batch
        self.answers = []

    async def __call__(self, call):
        most = min(call.body.max_bytes, call.allowance.most_bytes)
        count = max(1, most // self.batch) if most else 0
        records = [bytes(self.batch)] * count
        partition = PartitionAnswer(0, records=records, size=self.batch * count)
        pieces = encode_fetch(call.version, FetchAnswer([("t", [partition])]))
        self.answers.append(self.batch * count)
        return Encoded(pieces, throttle_at=0)


class AskingClient:
    """A client that asks on as soon as it may. `throttled_ms`: the throttle time of each answer."""

    def __init__(self, all_, clock, throttle_from, **transport):
        self.client = Client(all_, **transport)
        self.clock = clock
        self.throttle_from = throttle_from
        self.throttled_ms = []
        self.sent = 0

    async def ask(self, frame):
        """Send a request once the broker reads; wait for its answer."""
        while not self.client.transport.reading:
            await pause(0.005)
        self.sent += len(frame)
        self.client.send(frame)
        while not self.client.transport.unsent:
            await pause(0.005)
        answer = self.client.transport.take()
        at = self.throttle_from if self.throttle_from >= 0 else len(answer) + self.throttle_from
        self.throttled_ms.append(struct.unpack_from(">i", answer, at)[0])

    async def go_on(self, until_s, frame):
        """Ask on until then."""
        while self.clock.now_s < until_s:
            await self.ask(frame)


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("size", [8_000, 30_000])
def test_producers_are_held_to_their_byte_rate(count, size):
    async def scenario(clock):
        all_ = connections({PRODUCE: appended}, {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: LIMIT}}, clock)
        clients = [AskingClient(all_, clock, -4) for _ in range(count)]
        began_s = clock.now_s
        await asyncio.gather(*(one.go_on(began_s + 30, produce(1, size)) for one in clients))
        rate = sum(one.sent for one in clients) / (clock.now_s - began_s)
        assert rate == pytest.approx(LIMIT, rel=0.1)
        assert all(max(one.throttled_ms) > 0 for one in clients)

    run_virtually(scenario)


@pytest.mark.parametrize("count", [1, 8])
def test_consumers_are_held_to_their_byte_rate(count):
    async def scenario(clock):
        records = Records()
        all_ = connections({FETCH: records}, {EVERYBODY: {Quota.CONSUMER_BYTE_RATE: LIMIT}}, clock)
        clients = [AskingClient(all_, clock, 8, high=10**9) for _ in range(count)]
        began_s = clock.now_s
        await asyncio.gather(*(one.go_on(began_s + 30, fetch(1)) for one in clients))
        rate = sum(records.answers) / (clock.now_s - began_s)
        assert rate == pytest.approx(LIMIT, rel=0.1)
        assert max(records.answers) <= LIMIT

    run_virtually(scenario)


@pytest.mark.parametrize("count", [1, 8])
def test_clients_are_held_to_their_share_of_the_processor(count):
    async def scenario(clock):
        used = 0.0

        async def groups(call):
            nonlocal used
            used += 0.01
            return {"error_code": 0, "groups": []}

        limits = {EVERYBODY: {Quota.REQUEST_PERCENTAGE: 20.0}}
        all_ = connections({LIST_GROUPS: groups}, limits, clock, processor_s=lambda: used)
        clients = [AskingClient(all_, clock, 8) for _ in range(count)]
        began_s = clock.now_s
        await asyncio.gather(*(one.go_on(began_s + 30, request(LIST_GROUPS, 1, 1)) for one in clients))
        assert used / (clock.now_s - began_s) == pytest.approx(0.2, rel=0.1)

    run_virtually(scenario)


def test_a_consumer_over_its_rate_gets_an_answer_without_records_at_once():
    async def scenario(clock):
        records = Records()
        all_ = connections({FETCH: records}, {EVERYBODY: {Quota.CONSUMER_BYTE_RATE: LIMIT}}, clock)
        first, second = (AskingClient(all_, clock, 8, high=10**9) for _ in range(2))
        records.batch = 3 * LIMIT  # one batch, which is larger than what a window brings
        await first.ask(fetch(1))
        began_s = clock.now_s
        await second.ask(fetch(1))
        assert records.answers == [3 * LIMIT, 0]
        assert clock.now_s - began_s < 0.05
        assert second.throttled_ms == [pytest.approx(2000, abs=10)]
        await second.ask(fetch(2))
        assert clock.now_s - began_s == pytest.approx(2, abs=0.05)
        assert records.answers[-1] == 3 * LIMIT

    run_virtually(scenario)


def test_a_producer_without_acks_is_muted_all_the_same():
    async def scenario(clock):
        all_ = connections({PRODUCE: appended}, {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: 10_000}}, clock)
        client = Client(all_)
        client.send(produce(1, 30_000, acks=0))
        await settle()
        assert not client.transport.reading
        assert client.transport.unsent == b""
        await pause(1.9)
        assert not client.transport.reading
        await pause(0.2)
        assert client.transport.reading

    run_virtually(scenario)


def test_what_a_muted_client_has_sent_waits_unless_it_is_produced():
    async def scenario(clock):
        handler, produced = Handler({"error_code": 0, "groups": []}), []

        async def append(call):
            produced.append(call)
            return await appended(call)

        limits = {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: 10_000}}
        all_ = connections({PRODUCE: append, LIST_GROUPS: handler}, limits, clock)
        client = Client(all_)
        client.send(produce(1, 20_000) + produce(2, 20_000) + request(LIST_GROUPS, 0, 3))
        assert await client.answered() == [1, 2]
        assert len(produced) == 2
        assert handler.begun == []
        await pause(3.1)
        await settle()
        assert len(handler.begun) == 1

    run_virtually(scenario)


def test_a_broker_that_stops_answers_what_a_muted_client_has_sent():
    async def scenario(clock):
        async def groups(call):
            return {"error_code": 0, "groups": []}

        limits = {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: 10}}
        all_ = connections({PRODUCE: appended, LIST_GROUPS: groups}, limits, clock)
        client = Client(all_)
        client.send(produce(1, 20_000) + request(LIST_GROUPS, 0, 2))
        assert await client.answered() == [1]
        began_s = clock.now_s
        draining = asyncio.ensure_future(all_.drain(5))
        assert await client.answered() == [2]
        await draining
        assert clock.now_s - began_s < 1

    run_virtually(scenario)


def test_a_muted_client_is_not_idle():
    async def scenario(clock):
        limits = {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: 10}}
        all_ = connections({PRODUCE: appended}, limits, clock, idle_s=600)
        muted, idle = Client(all_), Client(all_)
        muted.send(produce(1, 30_000))
        assert await muted.answered() == [1]
        clock.now_s += 700
        all_.look()
        assert (muted.transport.lost, idle.transport.lost) == (False, True)
        muted.transport.abort()

    run_virtually(scenario)


def test_a_muted_client_that_has_gone_is_idle():
    async def scenario():
        clock = FakeClock()
        all_ = connections({PRODUCE: appended}, {EVERYBODY: {Quota.PRODUCER_BYTE_RATE: 10}}, clock, idle_s=600)
        server = await asyncio.get_running_loop().create_server(lambda: all_.new("PLAINTEXT"), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(produce(1, 30_000))
        await reader.readexactly(4)
        all_.look()
        writer.close()
        await writer.wait_closed()
        clock.now_s += 500
        all_.look()
        await asyncio.sleep(0)
        assert len(all_) == 1  # what it sent with its last breath may be there to be read
        clock.now_s += 200
        async with asyncio.timeout(60):
            while len(all_):
                all_.look()
                await asyncio.sleep(0)
        server.close()
        await all_.drain(0)

    asyncio.run(scenario())


def test_a_client_without_a_quota_is_not_held_up_by_one_that_has():
    async def scenario(clock):
        limits = {Entity("ANONYMOUS", "slow"): {Quota.PRODUCER_BYTE_RATE: 10}}
        all_ = connections({PRODUCE: appended}, limits, clock)
        other = AskingClient(all_, clock, -4)
        began_s = clock.now_s
        for _ in range(100):
            await other.ask(produce(1, 30_000))
        assert other.throttled_ms == [0] * 100
        assert clock.now_s - began_s < 1

    run_virtually(scenario)


def test_an_address_is_held_to_its_rate_of_connections(caplog):
    async def scenario(clock):
        limits = {Entity(ip="10.0.0.1"): {Quota.CONNECTION_CREATION_RATE: 20.0}}
        all_ = connections({}, limits, clock)
        fate = Counter()
        for _ in range(6_000):  # two hundred a second
            client = Client(all_)
            await pause(0)
            if client.transport.reading:
                fate["let in"] += 1
                client.transport.abort()
            else:
                fate["kept out"] += 1
            await pause(0.005)
        assert fate["let in"] / 30 == pytest.approx(20, rel=0.1)
        assert Client(all_, host="10.0.0.2").transport.reading
        await pause(1.1)  # all that were kept out are closed by then
        assert len(all_) == 1
        assert all_.meter.connections_refused == fate["kept out"]
        assert "its address is over its connection_creation_rate" in caplog.text

    run_virtually(scenario)
