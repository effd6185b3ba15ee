"""Connections: requests in order, and what one client may take of the broker, by transports that are none."""

import asyncio
import logging
import struct

import pytest
from support.broker_connections import Client, Handler, connections, fetch, list_groups, produce, request, run, settle

from tidelog.broker.base.calls import Encoded
from tidelog.broker.wire.apis import ApiKey

PRODUCE, FETCH, LIST_GROUPS, API_VERSIONS = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_GROUPS, ApiKey.API_VERSIONS
GROUPS = {"error_code": 0, "groups": []}
DONE = Encoded([b"done"])


# --- order -------------------------------------------------------------------------------------------------


def test_a_request_begins_when_the_one_before_is_answered():
    async def scenario():
        handler = Handler(GROUPS)
        client = Client(connections({LIST_GROUPS: handler}))
        client.send(list_groups(1) + list_groups(2))
        assert await client.answered() == []
        assert len(handler.begun) == 1
        handler.end(0)
        assert await client.answered() == [1]
        assert len(handler.begun) == 2
        handler.end(1)
        assert await client.answered() == [2]

    run(scenario)


def test_produce_requests_begin_as_they_come_and_are_answered_in_order():
    async def scenario():
        handler = Handler(DONE)
        client = Client(connections({PRODUCE: handler}))
        client.send(produce(1) + produce(2) + produce(3))
        await settle()
        assert len(handler.begun) == 3
        handler.end(2)
        handler.end(1)
        assert await client.answered() == []
        handler.end(0)
        assert await client.answered() == [1, 2, 3]

    run(scenario)


def test_a_produce_request_does_not_overtake_another_kind_of_request():
    async def scenario():
        first, second = Handler(GROUPS), Handler(DONE)
        client = Client(connections({LIST_GROUPS: first, PRODUCE: second}))
        client.send(list_groups(1) + produce(2))
        await settle()
        assert (len(first.begun), len(second.begun)) == (1, 0)
        first.end(0)
        await settle()
        assert len(second.begun) == 1

    run(scenario)


def test_brokers_of_one_process_do_not_read_into_each_others_requests():
    """Each has a thread: one reads while the other has read and not looked yet."""

    async def scenario():
        handlers = [Handler(GROUPS), Handler(GROUPS)]
        clients = [Client(connections({LIST_GROUPS: handler})) for handler in handlers]
        for number, client in enumerate(clients):
            sent = list_groups(number)
            client.protocol.get_buffer(-1)[: len(sent)] = sent
        for client in clients:
            client.protocol.buffer_updated(len(list_groups(0)))
        await settle()
        for handler in handlers:
            handler.end(0)
        assert [await client.answered() for client in clients] == [[0], [1]]

    run(scenario)


def test_a_connection_reads_no_further_with_64_requests_waiting():
    async def scenario():
        handler = Handler(GROUPS)
        client = Client(connections({LIST_GROUPS: handler}))
        for number in range(63):
            client.send(list_groups(number))
        assert client.transport.reading
        client.send(list_groups(63))
        assert not client.transport.reading
        await settle()
        handler.end(0)
        await settle()
        assert client.transport.reading

    run(scenario)


# --- what is no request ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "speaks HTTP on a PLAINTEXT listener"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS on a PLAINTEXT listener"),
        (struct.pack(">i", 2_000_000_000), "announces a request of 2000000000 bytes"),
        (struct.pack(">i", 3) + b"abc", "has no header"),
        (struct.pack(">i", 12) + b"\xff" * 12, "is not offered"),
        (request(ApiKey(18), 0, 1)[:4] + struct.pack(">hhih", 18, 0, 1, 500), "client id has 500 bytes"),
        (request(LIST_GROUPS, 99, 1), "LIST_GROUPS of version 99 is not offered"),
        (struct.pack(">ihhih", 10, 6, 0, 1, -1), "The API 6 is not offered"),
        (request(ApiKey.METADATA, 0, 1, b"\xff"), "METADATA of version 0 can't be read"),
    ],
)
def test_garbage_closes_the_connection_with_one_line(sent, said, caplog):
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler, ApiKey.METADATA: handler})
        client, other = Client(all_, host="10.6.6.6"), Client(all_)
        with caplog.at_level(logging.INFO, "tidelog"):
            client.send(sent)
            await settle()
        assert client.transport.lost
        (line,) = [r for r in caplog.records if r.levelno >= logging.INFO]
        assert line.levelno == logging.WARNING
        assert line.getMessage().startswith("Connection closed: peer=10.6.6.6 listener=PLAINTEXT: ")
        assert said in line.getMessage()
        assert handler.begun == []
        assert all_.meter.connections_dropped == 1
        other.send(list_groups(1))
        await settle()
        handler.end(0)
        assert await other.answered() == [1]
        assert all_.requests.used == 0

    run(scenario)


def test_a_version_of_api_versions_that_is_not_offered_reaches_its_handler():
    async def scenario():
        handler = Handler(DONE)
        client = Client(connections({API_VERSIONS: handler}))
        client.send(request(API_VERSIONS, 99, 1, b"any"))
        await settle()
        assert [(call.version, bytes(call.body)) for call in handler.begun] == [(99, b"any")]

    run(scenario)


def test_a_request_that_fails_closes_its_connection_with_a_traceback(caplog):
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler})
        client = Client(all_)
        client.send(list_groups(1))
        await settle()
        handler.fail(0, ZeroDivisionError("oh"))
        await settle()
        assert client.transport.lost
        (line,) = [r for r in caplog.records if r.levelno == logging.ERROR]
        assert line.exc_info[1].args == ("oh",)
        assert "LIST_GROUPS" in line.getMessage()

    run(scenario)


def test_an_answer_that_can_not_be_encoded_counts_as_a_failed_request(caplog):
    async def scenario():
        handler = Handler({"no": "such field"})
        client = Client(connections({LIST_GROUPS: handler}))
        client.send(list_groups(1))
        await settle()
        handler.end(0)
        await settle()
        assert client.transport.lost
        assert [r.levelname for r in caplog.records] == ["ERROR"]

    run(scenario)


# --- bounds ------------------------------------------------------------------------------------------------


def test_more_connections_than_max_connections_are_refused(caplog):
    async def scenario():
        all_ = connections({}, max_connections=2)
        clients = [Client(all_, host=f"10.0.0.{n}") for n in range(3)]
        assert [c.transport.lost for c in clients] == [False, False, True]
        assert "Connection refused: peer=10.0.0.2 listener=PLAINTEXT: max.connections is 2" in caplog.text
        clients[0].transport.abort()
        assert not Client(all_).transport.lost
        assert all_.meter.connections_refused == 1

    run(scenario)


def test_more_connections_of_one_address_than_allowed_are_refused(caplog):
    async def scenario():
        all_ = connections({}, max_connections_per_ip=2)
        clients = [Client(all_, host="10.0.0.1") for _ in range(3)]
        assert [c.transport.lost for c in clients] == [False, False, True]
        assert "max.connections.per.ip is 2" in caplog.text
        assert not Client(all_, host="10.0.0.2").transport.lost
        clients[0].transport.abort()
        assert not Client(all_, host="10.0.0.1").transport.lost

    run(scenario)


def test_an_idle_connection_is_closed_and_one_that_waits_for_its_answer_is_not():
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler}, idle_s=600)
        idle, half, busy, heard = Client(all_), Client(all_), Client(all_), Client(all_)
        half.send(struct.pack(">i", 1000) + b"half")
        busy.send(list_groups(1))
        await settle()
        all_.clock.now_s += 599
        heard.send(b"\0")
        all_.look()
        assert not any(c.transport.lost for c in (idle, half, busy, heard))
        all_.clock.now_s += 1
        all_.look()
        assert [c.transport.lost for c in (idle, half, busy, heard)] == [True, True, False, False]
        assert len(all_) == 2
        handler.end(0)

    run(scenario)


def test_a_reader_that_takes_nothing_is_dropped_and_a_slow_one_is_not(caplog):
    async def scenario():
        handler = Handler(Encoded([b"x" * 100_000]))
        all_ = connections({FETCH: handler}, stalled_s=60)
        clients = [Client(all_, host=host) for host in ("10.0.0.1", "10.0.0.2")]
        for client in clients:
            client.send(fetch(1))
        await settle()
        handler.end(0)
        handler.end(1)
        await settle()
        assert all_.answers.used == 2 * 100_008
        for _ in range(4):
            all_.clock.now_s += 30
            clients[1].transport.take(100)
            all_.look()
        assert [c.transport.lost for c in clients] == [True, False]
        assert "peer=10.0.0.1 listener=PLAINTEXT: 100008 bytes of its answers were not taken for 60 s" in caplog.text
        assert all_.answers.used == 100_008
        clients[1].transport.take()
        assert all_.answers.used == 0

    run(scenario)


def test_a_reader_that_takes_nothing_holds_up_others_for_seconds_only():
    async def scenario():
        handler = Handler(Encoded([b"x" * 100_000]))
        all_ = connections({FETCH: handler}, stalled_s=60, unsent_max_bytes=150_000)
        stalled, slow, waits = (Client(all_, host=f"10.0.0.{n}") for n in range(3))
        for client in (stalled, slow):
            client.send(fetch(1))
        await settle()
        handler.end(0)
        handler.end(1)
        await settle()
        waits.send(fetch(1))
        await settle()
        assert len(handler.begun) == 2
        for _ in range(2):
            all_.clock.now_s += 2.5
            slow.transport.take(100)
            all_.look()
        assert [c.transport.lost for c in (stalled, slow, waits)] == [True, False, False]
        await settle()
        assert len(handler.begun) == 3

    run(scenario)


def test_a_slow_reader_gets_no_second_answer_and_is_not_read_from():
    async def scenario():
        handler = Handler(Encoded([b"x" * 100_000]))
        client = Client(connections({FETCH: handler}))
        client.send(fetch(1) + fetch(2))
        await settle()
        handler.end(0)
        await settle()
        handler.end(1)
        await settle()
        assert len(client.transport.unsent) == 100_008
        assert not client.transport.reading
        client.transport.take()
        await settle()
        assert len(client.transport.unsent) == 100_008
        client.transport.take()
        await settle()
        assert client.transport.reading

    run(scenario)


def test_a_closed_connection_that_takes_nothing_is_cut():
    async def scenario():
        handler = Handler(DONE)
        all_ = connections({LIST_GROUPS: handler}, stalled_s=60)
        client = Client(all_)
        client.send(list_groups(1))
        await settle()
        handler.end(0)
        await settle()
        client.send(b"GET / HTTP/1.1")
        assert client.transport.closing
        assert not client.transport.lost
        all_.clock.now_s += 60
        all_.look()
        assert client.transport.lost

    run(scenario)


def test_requests_that_wait_stop_all_reading_at_queued_max_request_bytes():
    async def scenario():
        handler = Handler(DONE)
        all_ = connections({PRODUCE: handler}, queued_max_bytes=100_000)
        first, second, third = Client(all_), Client(all_), Client(all_)
        third.send(struct.pack(">i", 20_000) + b"x" * 10)  # begun before: it may come whole
        for number in range(3):
            first.send(produce(number, 30_000))
        assert first.transport.reading == second.transport.reading is False
        assert third.transport.reading
        fourth = Client(all_)
        await settle()
        assert not fourth.transport.reading
        handler.end(0)
        await settle()
        assert not second.transport.reading, "it begins again at three quarters"
        handler.end(1)
        await settle()
        assert first.transport.reading
        assert second.transport.reading
        handler.end(2)
        await settle()
        third.transport.abort()
        assert all_.requests.used == 0

    run(scenario)


def test_a_fetch_waits_where_clients_take_too_little_of_earlier_answers():
    async def scenario():
        handler = Handler(Encoded([b"x" * 100_000]))
        other = Handler(GROUPS)
        all_ = connections({FETCH: handler, LIST_GROUPS: other}, unsent_max_bytes=90_000)
        slow, eager = Client(all_), Client(all_)
        slow.send(fetch(1))
        await settle()
        handler.end(0)
        await settle()
        eager.send(list_groups(1) + fetch(2))
        await settle()
        other.end(0)
        assert await eager.answered() == [1]
        assert len(handler.begun) == 1
        slow.transport.take()
        await settle()
        assert len(handler.begun) == 2
        handler.end(1)
        assert await eager.answered() == [2]

    run(scenario)


# --- the end -----------------------------------------------------------------------------------------------


def test_draining_answers_what_was_asked_and_reads_nothing_more():
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler})
        busy, idle = Client(all_), Client(all_)
        busy.send(list_groups(1) + list_groups(2))
        await settle()
        drained = asyncio.ensure_future(all_.drain(30))
        await settle()
        assert idle.transport.lost
        assert not busy.transport.reading
        assert not drained.done()
        handler.end(0)
        await settle()
        handler.end(1)
        assert await busy.answered() == [1, 2]
        assert busy.transport.lost
        await drained

    run(scenario)


def test_draining_cuts_what_takes_longer_than_its_grace(caplog):
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler})
        busy = Client(all_)
        busy.send(list_groups(1))
        await settle()
        await all_.drain(0.001)
        assert busy.transport.lost
        assert "1 connections were still busy" in caplog.text
        handler.end(0)

    run(scenario)


# --- counts ------------------------------------------------------------------------------------------------


def test_requests_are_counted_with_their_bytes_and_times():
    async def scenario():
        handler = Handler(DONE)
        all_ = connections({PRODUCE: handler})
        client = Client(all_)
        client.send(produce(1))
        await settle()
        all_.clock.now_s += 0.1
        handler.end(0)
        await settle()
        meter = all_.meter.requests["PRODUCE"]
        assert dict(meter.requests) == {3: 1}
        assert (meter.bytes_in, meter.bytes_out) == (len(produce(1)) - 4, 12)
        (total,) = meter.total.quantiles([0.5]).values()
        assert 80 < total < 120
        assert meter.handled.count == 1

    run(scenario)
