"""A download that lasts holds nothing that a rewrite took away while it went on."""

from types import SimpleNamespace

import pytest
from support.logs import memory_lake, read_offsets
from support.rewrites import KEYS, TAKE_RECORDS_AWAY, fill_rounds

from tidelog.console.records.downloads import wanted_batches

EVERYTHING = SimpleNamespace(wanted=SimpleNamespace(takes_all=True))


@pytest.mark.parametrize("kind", TAKE_RECORDS_AWAY)
def test_a_download_holds_what_the_log_holds_by_then(kind, monkeypatch):
    monkeypatch.setattr("tidelog.log.read_on.LOOK_S", 0.0)
    lake = memory_lake()[0]
    fill_rounds(lake)
    batches = wanted_batches(lake.topic("t"), {0: (0, 30)}, EVERYTHING, 1_000)
    assert next(batches).column("offset").to_pylist() == list(range(KEYS))  # the first segment
    TAKE_RECORDS_AWAY[kind](lake, "t")
    rest = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert rest == [offset for offset, _ in read_offsets(lake, "t") if offset >= KEYS]
