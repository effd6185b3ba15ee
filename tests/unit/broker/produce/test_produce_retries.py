"""Requests that are produced again: by idempotent producers, and where the store fails."""

import asyncio

import pytest
from support.group_commits import failing, lake_with
from support.logs import START_MS, open_lake
from support.produce_requests import batch, read_back, told, with_broker
from support.waiting import eventually_async

from tidelog.broker.produce.reading import UnitReader
from tidelog.log.base.errors import ContendedLogError, OutcomeUnknownError
from tidelog.transactions.transaction_log import TransactionLog

# --- idempotent producers ----------------------------------------------------------------------------------


def test_a_repeat_is_answered_with_its_first_offset():
    lake, _, _ = lake_with(1)

    async def act(asked):
        first = [batch(b"%d" % at, b"x", producer=(7, 0, 2 * at)) for at in range(5)]
        found = [await asked.one(one) for one in first]
        return [told(one) for one in found], [told(await asked.one(one)) for one in first]

    landed, repeated = with_broker(lake, act)
    assert landed == repeated == [(0, 2 * at) for at in range(5)]
    assert len(read_back(lake)[0]) == 10


def test_a_repeat_beside_its_first_is_answered_alike():
    lake, _, _ = lake_with(1)
    one = batch(b"a", producer=(7, 0, 0))

    async def act(asked):
        await asked.one(batch(b"before"))
        return [told(found) for found in await asyncio.gather(*(asked.one(one) for _ in range(3)))]

    assert with_broker(lake, act) == [(0, 1)] * 3
    assert read_back(lake) == {0: [b"before", b"a"]}


@pytest.mark.parametrize("refused", [ContendedLogError("lost"), OutcomeUnknownError("unknown", request_id="r")])
def test_a_repeat_beside_its_first_is_refused_alike_where_a_transaction_gets_no_part(monkeypatch, refused):
    """Else it is acknowledged, and its transaction has no such record, or is not there when it is to be committed."""
    lake, _, _ = lake_with(1)
    log = TransactionLog(lake)
    one = log.begin("x", 60_000).one
    records = batch(b"a", producer=(one.producer_id, one.kafka_epoch, 0), transactional=True)

    def fails(*_):
        raise refused

    async def codes(asked):
        answers = await asyncio.gather(*(asked.one(records, 12, transactional_id="x") for _ in range(2)))
        return [found.error_code for found in answers]

    async def act(asked):
        with monkeypatch.context() as patched:
            patched.setattr(TransactionLog, "stage", fails)
            failed = await codes(asked)
        return failed, await codes(asked)

    assert with_broker(lake, act) == ([refused.kafka_code] * 2, [0, 0])
    assert [segment.records for part in log.open("x").parts for segment in part.segments] == [1]


def test_a_repeat_that_another_broker_took_is_told_to_be_there():
    lake, _, _ = lake_with(1)
    one = batch(b"a", producer=(7, 0, 0))
    assert told(with_broker(lake, lambda asked: asked.one(one))) == (0, 0)
    found = with_broker(lake, lambda asked: asked.one(one))
    assert told(found) == (46, -1)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"b", producer=(7, 0, 1))))) == (0, 1)
    assert read_back(lake) == {0: [b"a", b"b"]}


@pytest.mark.parametrize(
    ("epoch", "sequence", "code"), [(1, 5, 0), (1, 6, 45), (1, 4, 46), (0, 5, 47), (2, 0, 0), (2, 5, 45)]
)
def test_sequences_are_judged_from_the_log(epoch, sequence, code):
    lake, _, _ = lake_with(1)
    with_broker(lake, lambda asked: asked.one(batch(*[b"x"] * 5, producer=(7, 1, 0))))
    found = with_broker(lake, lambda asked: asked.one(batch(b"y", producer=(7, epoch, sequence))))
    assert told(found) == (code, -1 if code else 5)


def test_what_follows_a_refused_batch_of_its_producer_is_refused_too():
    lake, _, _ = lake_with(1)

    async def act(asked):
        await asked.one(batch(b"0", producer=(7, 0, 0)))
        sent = [batch(b"1", producer=(7, 0, 1), timestamp=START_MS + 10**9), batch(b"2", producer=(7, 0, 2))]
        return await asyncio.gather(*map(asked.one, [*sent, batch(b"other", producer=(8, 0, 0))]))

    assert [told(one) for one in with_broker(lake, act)] == [(32, -1), (45, -1), (0, 1)]


@pytest.mark.parametrize("follows", ["in the same entry", "in an entry of its own", "at another broker"])
def test_what_follows_a_failed_first_batch_waits_for_it(follows):
    """Else the first batch, sent again, would count as there already, and be lost."""
    lake, _, _ = lake_with(1)
    late = batch(b"0", producer=(7, 0, 0), timestamp=START_MS + 10**9)
    first, second = batch(b"0", producer=(7, 0, 0)), batch(b"1", producer=(7, 0, 1))

    async def together(asked):
        return await asyncio.gather(asked.one(late), asked.one(second))

    async def one_by_one(asked):
        return [await asked.one(late), await asked.one(second)]

    if follows == "at another broker":
        failed = [with_broker(lake, lambda asked, one=one: asked.one(one)) for one in (late, second)]
    else:
        failed = with_broker(lake, together if follows == "in the same entry" else one_by_one)
    assert [told(one) for one in failed] == [(32, -1), (59, -1)]
    assert read_back(lake) == {0: []}

    async def again(asked):
        return [told(await asked.one(one)) for one in (first, second)]

    assert with_broker(lake, again) == [(0, 0), (0, 1)]
    assert read_back(lake) == {0: [b"0", b"1"]}


@pytest.mark.parametrize("known", [(), (b"0",)])
def test_what_follows_batches_that_another_broker_took_is_judged_by_the_newest_log(known):
    """A broker that led the topic before, and does again, has not seen what came between."""
    lake, storage, clock = lake_with(1)
    other = open_lake(storage, clock)
    at = len(known)

    async def act(asked):
        await asked.one(batch(b"before"))
        for sequence, value in enumerate(known):
            await asked.one(batch(value, producer=(7, 0, sequence)))
        between = batch(b"between", producer=(7, 0, at))
        assert told(await asyncio.to_thread(with_broker, other, lambda there: there.one(between))) == (0, at + 1)
        return told(await asked.one(batch(b"after", producer=(7, 0, at + 1))))

    assert with_broker(lake, act) == (0, at + 2)
    assert read_back(lake) == {0: [b"before", *known, b"between", b"after"]}


# --- stores that fail --------------------------------------------------------------------------------------


def test_an_attempt_that_fails_is_repeated():
    lake, _, clock = lake_with(1, failing(2, "put", "before"))

    async def act(asked):
        found = asyncio.ensure_future(asked.one(batch(b"a")))

        def is_done():
            clock.pass_s(0.1)
            return found.done()

        await eventually_async(is_done, "the batch lands")
        return await found

    assert told(with_broker(lake, act)) == (0, 0)
    assert read_back(lake) == {0: [b"a"]}


def test_a_request_whose_time_is_up_is_told_so():
    lake, _, clock = lake_with(1)

    async def act(asked):
        sent = asyncio.ensure_future(asked.one(batch(b"a"), timeout_s=1.0))
        await asyncio.sleep(0)
        clock.pass_s(2.0)
        return await sent

    assert told(with_broker(lake, act)) == (7, -1)
    assert read_back(lake) == {0: []}


def test_a_fault_in_the_program_is_an_answer_too(monkeypatch, caplog):
    lake, _, _ = lake_with(1)

    def broken(*_):
        raise RuntimeError("a fault")

    monkeypatch.setattr(UnitReader, "read", broken)
    assert told(with_broker(lake, lambda asked: asked.one(batch(b"a")))) == (-1, -1)
    assert "a fault" in caplog.text


def test_what_is_produced_is_counted():
    lake, _, _ = lake_with(2)
    sent = batch(b"a", b"b")

    async def act(asked):
        await asked.ask(9, {"t": {0: sent, 1: sent, 5: sent}})
        return asked.broker.meter.topic("t")

    counts = with_broker(lake, act)
    assert (counts.produce_requests, counts.failed_produce_requests) == (3, 1)
    assert (counts.messages_in, counts.bytes_in) == (4, 2 * len(sent))
