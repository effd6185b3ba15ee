"""Large requests on connections: decoded beside the loop, handled in slices, and in their order."""

import asyncio
import struct

from support.broker_connections import Client, Handler, connections, request, settle

from tidelog.broker.base.calls import Encoded
from tidelog.broker.server.answering import LargeRequests
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.primitives import compact_string, uvarint

PRODUCE = ApiKey.PRODUCE
DEAD = dict.fromkeys(("group_state", "protocol_type", "protocol_data"), "") | {"error_code": 0}
DONE = Encoded([b"done"])


def produce(correlation_id):
    """A request Produce 3 without topics."""
    return request(PRODUCE, 3, correlation_id, struct.pack(">hhii", -1, 1, 1000, 0))


def large_produce(correlation_id):
    """A request Produce 9 of 1,500 topics without partitions."""
    body = b"\0" + struct.pack(">hi", 1, 1000) + uvarint(1501) + b"\2t\1\0" * 1500 + b"\0"
    return request(PRODUCE, 9, correlation_id, b"\0" + body)


def test_a_request_waits_for_a_large_one_before_it_to_be_decoded():
    async def scenario():
        handler, decoded = Handler(DONE), asyncio.Event()
        all_ = connections({PRODUCE: handler})

        async def beside(call, /, *args, **kwargs):
            await decoded.wait()
            return call(*args, **kwargs)

        all_.large = LargeRequests(beside)
        client = Client(all_)
        client.send(large_produce(1) + produce(2) + large_produce(3) + produce(4))
        await settle()
        assert handler.begun == []
        decoded.set()
        await settle()
        assert [len(call.body.topic_data) for call in handler.begun] == [1500, 0, 1500, 0]
        for number in range(4):
            handler.end(number)
        assert await client.answered() == [1, 2, 3, 4]

    asyncio.run(scenario())


def test_large_requests_are_decoded_beside_the_loop_and_handled_in_slices():
    async def scenario():
        slices, beside_loop = [], []

        async def describe(call):
            slices.append(call.body.groups)
            return {"groups": [{"group_id": one} | DEAD for one in call.body.groups]}

        async def beside(call, /, *args, **kwargs):
            beside_loop.append(call.__name__)
            return call(*args, **kwargs)

        all_ = connections({ApiKey.DESCRIBE_GROUPS: describe})
        all_.large = LargeRequests(beside)
        client = Client(all_)
        names = [f"g{n:04}" for n in range(1_100)]
        body = uvarint(1_101) + b"".join(compact_string(name) for name in names) + b"\0\0"
        client.send(request(ApiKey.DESCRIBE_GROUPS, 5, 7, b"\0" + body))
        for _ in range(20):
            await settle()
        assert await client.answered() == [7]
        assert [name for one in slices for name in one] == names
        assert max(map(len, slices)) == 250
        assert beside_loop == ["_in_slices", "joined", "_in_bytes"]
        meter = all_.meter.api("DESCRIBE_GROUPS")
        assert meter.errors == {0: 1_100}

    asyncio.run(scenario())


def test_large_requests_that_wait_for_others_take_no_turn_of_those_that_do_not():
    async def scenario():
        members = Handler({})

        async def describe(call):
            return {"groups": [{"group_id": one} | DEAD for one in call.body.groups]}

        all_ = connections({ApiKey.JOIN_GROUP: members, ApiKey.DESCRIBE_GROUPS: describe})
        protocols = struct.pack(">i", 1_100) + (struct.pack(">h", 1) + b"p" + struct.pack(">i", 0)) * 1_100
        joins = b"\0\1g" + struct.pack(">i", 6000) + b"\0\0" + b"\0\1c" + protocols
        for number in range(4):
            Client(all_).send(request(ApiKey.JOIN_GROUP, 0, number, joins))
        client = Client(all_)
        body = struct.pack(">i", 1_100) + b"\0\1g" * 1_100
        client.send(request(ApiKey.DESCRIBE_GROUPS, 0, 7, body))
        for _ in range(20):
            await settle()
        assert len(members.begun) == 4
        assert await client.answered() == [7]

    asyncio.run(scenario())
