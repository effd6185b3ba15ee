"""Requests of clients that are gone: which are executed all the same, and which end with their connection."""

from support.broker_connections import Client, Handler, connections, fetch, list_groups, produce, run, settle

from tidelog.broker.base.calls import Encoded
from tidelog.broker.wire.apis import ApiKey

PRODUCE, FETCH, LIST_GROUPS = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_GROUPS
GROUPS = {"error_code": 0, "groups": []}
DONE = Encoded([b"done"])


def test_a_client_that_asks_for_no_answer_gets_none_and_its_requests_outlive_it():
    async def scenario():
        handler = Handler()
        all_ = connections({PRODUCE: handler})
        client = Client(all_)
        client.send(produce(1))
        await settle()
        client.transport.abort()
        await settle()
        assert handler.cancelled == 0
        handler.end(0)
        await settle()
        assert all_.requests.used == 0

    run(scenario)


def test_what_came_whole_before_its_client_went_is_executed_in_order():
    """As a member needs that leaves its group while its last commit is written, and closes at once."""

    async def scenario():
        first, second, polls = Handler(GROUPS), Handler(DONE), Handler(DONE)
        all_ = connections({LIST_GROUPS: first, PRODUCE: second, FETCH: polls})
        client = Client(all_)
        client.send(list_groups(1) + produce(2) + fetch(3) + list_groups(4) + list_groups(5)[:-1])
        await settle()
        client.transport.abort()
        await settle()
        assert (len(first.begun), len(second.begun)) == (1, 0)
        first.end(0)
        await settle()
        assert (len(first.begun), len(second.begun)) == (1, 1)
        second.end(0)
        await settle()
        assert (len(first.begun), len(polls.begun)) == (2, 0)
        first.end(1)
        await settle()
        assert (len(first.begun), all_.requests.used) == (2, 0)

    run(scenario)


def test_of_a_client_that_was_sent_away_nothing_more_begins():
    async def scenario():
        handler = Handler(GROUPS)
        all_ = connections({LIST_GROUPS: handler})
        client = Client(all_)
        client.send(list_groups(1) + list_groups(2))
        client.protocol.close("it is idle")
        await settle()
        handler.end(0)
        await settle()
        assert (len(handler.begun), all_.requests.used) == (1, 0)

    run(scenario)


def test_a_long_poll_ends_with_its_connection():
    async def scenario():
        handler = Handler()
        all_ = connections({FETCH: handler})
        client = Client(all_)
        client.send(fetch(1))
        await settle()
        client.transport.abort()
        await settle()
        assert handler.cancelled == 1
        assert (all_.requests.used, len(all_)) == (0, 0)

    run(scenario)
