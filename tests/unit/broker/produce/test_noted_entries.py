"""Entries of noted records: what lands and what is answered is what columns give, and plain records need none."""

import pytest
from support.group_commits import lake_with
from support.logs import START_MS
from support.native import native_records
from support.produce_requests import LZ4, batch, read_back, told, with_broker

from tidelog.log.segments.noted import NotedPart

VALUES = [b"%d" % n * (n % 40) for n in range(300)]
PLAIN = [batch(*VALUES, key=None), batch(*VALUES[:7], codec=LZ4), batch(b"", None, producer=(7, 0, 0))]
OTHERS = {
    "headers": batch(b"a", headers=[("h", b"1")]),
    "no timestamp": batch(b"a", timestamp=-1),
    "too late": batch(b"a", timestamp=START_MS + 10**9),
    "broken": batch(b"a")[:-1] + b"x",
    "the same sequence": batch(b"", None, producer=(7, 0, 0)),
    "a missing sequence": batch(b"a", producer=(7, 0, 9)),
    "the next sequence": batch(b"a", producer=(7, 0, 2)),
}


@pytest.fixture(autouse=True)
def _native():
    native_records()


def landed(lake, rounds):
    """The answers, and all segments by partition, of requests one after another: {partition: batch}."""

    async def act(asked):
        answers = []
        for batches in rounds:
            answer = await asked.ask(9, {"t": batches})
            answers.append([(p.index, *told(p)) for one in answer.responses for p in one.partition_responses])
        return answers

    answers = with_broker(lake, act)
    state, storage = lake.topic("t").state(), lake.storage
    segments = [
        (segment.partition, segment.base_offset, storage.get(f"{lake.topic('t').folder}/{segment.path}"))
        for partition in sorted(state.segments)
        for segment in state.segments[partition]
    ]
    return answers, segments, read_back(lake)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("config", [{}, {"cleanup_policy": "compact"}, {"message_timestamp_type": "LogAppendTime"}])
def test_entries_are_those_of_columns(monkeypatch, other, config):
    rounds = [dict(enumerate(PLAIN)), {0: other, 1: PLAIN[1], 2: PLAIN[0]}, {2: other}, dict(enumerate(PLAIN))]
    ours = landed(lake_with(3, **config)[0], rounds)
    monkeypatch.setattr("tidelog.broker.records.native_records.NativeRecords.noted", lambda *_: None)
    assert landed(lake_with(3, **config)[0], rounds) == ours


def test_plain_records_need_no_columns(monkeypatch):
    def needed(_):
        raise AssertionError("columns were made")

    monkeypatch.setattr(NotedPart, "table", needed)
    monkeypatch.setattr("tidelog.broker.records.native_records.NativeNotes.table", needed)
    lake, _, _ = lake_with(3)
    answers, _, records = landed(lake, [dict(enumerate(PLAIN))])
    assert answers == [[(0, 0, 0), (1, 0, 0), (2, 0, 0)]]
    assert records == {0: VALUES, 1: VALUES[:7], 2: [b"", None]}
