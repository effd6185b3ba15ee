"""What a client may take of a broker that has not logged in: requests at once, time, room in the metrics."""

import asyncio
import logging

from support.broker_connections import request, settle
from support.sasl_clients import PASSWORDS, LoginWorld, SaslClient

from tidelog.broker.base.meter import NOT_OFFERED
from tidelog.broker.server.connection import MOST_WAITING
from tidelog.broker.wire.apis import ApiKey

VERSIONS = request(ApiKey.API_VERSIONS, 0, 7)


async def all_answered(client, count):
    async with asyncio.timeout(60):
        while count > 0:
            count -= len(await client.client.answered())
    assert count == 0


def test_a_client_that_sends_many_requests_before_its_login_is_closed(caplog):
    async def scenario():
        world = LoginWorld()
        few, many = SaslClient(world), SaslClient(world)
        few.client.send(VERSIONS * MOST_WAITING)
        await all_answered(few, MOST_WAITING)
        assert not few.is_closed
        with caplog.at_level(logging.WARNING):
            many.client.send(VERSIONS * 18_000)
        assert many.is_closed
        assert f"it sent more than {MOST_WAITING} requests before it had logged in" in caplog.text
        assert world.connections.requests.used == 0

    asyncio.run(scenario())


def test_a_client_that_has_logged_in_may_send_many_requests_at_once():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        client.client.send(VERSIONS * 3 * MOST_WAITING)
        assert world.connections.requests.used == 3 * MOST_WAITING * (len(VERSIONS) - 4)
        await all_answered(client, 3 * MOST_WAITING)
        assert not client.is_closed
        assert world.connections.requests.used == 0

    asyncio.run(scenario())


def test_a_client_that_takes_its_answers_bit_by_bit_has_no_longer_to_log_in():
    async def scenario():
        world = LoginWorld(login_within_s=30)
        client = SaslClient(world)
        while client.client.protocol._may_write:
            client.client.send(VERSIONS)
            await settle()
        for _ in range(5):
            world.clock.now_s += 5
            client.client.transport.take(1)
            world.connections.look()
        assert not client.is_closed
        world.clock.now_s += 5
        client.client.transport.take(1)
        world.connections.look()
        assert client.is_closed

    asyncio.run(scenario())


def test_versions_that_are_not_offered_are_counted_as_one():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        for version in (0, *range(900, 910), -7):
            client.client.send(request(ApiKey.API_VERSIONS, version, 7))
            await settle()
        assert dict(world.meter.api("API_VERSIONS").requests) == {0: 1, NOT_OFFERED: 11}

    asyncio.run(scenario())
