"""Repair of a lake that follows another one: no entry is written, and what to do instead is said."""

import pytest
from support.corruptible_lakes import objects
from support.corruptions import CORRUPTIONS, Corruption

from tidelog.check.lake import Kind, repair
from tidelog.log.config.lake_file import lake_file
from tidelog.log.delta import layout

OF_ENTRIES = {
    d.kind: d for d in reversed(CORRUPTIONS) if d.kind in (Kind.ENTRY_TORN, Kind.ENTRY_FOREIGN, Kind.ENTRY_BROKEN)
}
OF_CHECKPOINTS = next(d for d in CORRUPTIONS if d.kind is Kind.CHECKPOINT_UNREADABLE)


def entries(found: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in found.items() if layout.entry_version(path) is not None}


def follows(data: bytes) -> bytes:
    """The lake's own file, with the mark of a follower."""
    assert data == lake_file({})
    return data[:-1] + b',"follows":{"lake":"s3://bucket/main"}}'


@pytest.mark.parametrize("corruption", OF_ENTRIES.values(), ids=OF_ENTRIES)
def test_no_entry_of_a_follower_is_written(corruption: Corruption) -> None:
    mended = corruption.do()
    steps = repair(mended.storage, execute=True, clock=mended.clock).steps
    assert any(step.where.startswith("entry ") for step in steps)

    left = corruption.do()
    left.storage.put(layout.LAKE_FILE, follows(left.storage.get(layout.LAKE_FILE)))
    before = entries(objects(left.storage.inner))
    done = repair(left.storage, execute=True, clock=left.clock)
    assert entries(objects(left.storage.inner)) == before
    why = [r.why for r in done.refusals if r.where.startswith("entry ")]
    assert "follows s3://bucket/main" in why[0]
    assert "mirror start --discard-diverged" in why[0]


def test_what_is_a_followers_own_is_mended() -> None:
    left = OF_CHECKPOINTS.do()
    left.storage.put(layout.LAKE_FILE, follows(left.storage.get(layout.LAKE_FILE)))
    assert repair(left.storage, execute=True, clock=left.clock).steps
