"""docs/maintenance.md names every key of the reports, and no other."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.logs import memory_lake, values

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.maintenance import maintain

PAGE = (Path(__file__).parents[2] / "docs/maintenance.md").read_text(encoding="utf-8")
REPORTS = PAGE.partition("## The report of a run")[2]
# Keys that are names and numbers of the reader's own.
DATA = {"g", "__consumer_offsets"}
DAY_MS = 86_400_000


def keys(value: Any) -> Iterator[str]:
    """Every key in a JSON document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from () if key in DATA or key.isdigit() else (key,)
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def told() -> set[str]:
    """The keys of a run in which everything happens, and of forgetting a key."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1, {"cleanup.policy": "compact,delete", "segment.ms": "1"})
    lake.create_topic("broken", 1)
    for _ in range(3):
        lake.topic("t").append(values("v", key=["k"]))
        lake.topic("broken").append(values("v"))
    groups = GroupLog(lake)
    groups.commit_offsets("g", {("t", 0): CommittedOffset(1, commit_ms=clock.now_ms())})
    storage.delete(f"broken/{lake.topic('broken').state().live(0)[1].path}")
    clock.pass_s(1)
    merged = maintain(lake, groups=groups)
    forgotten = erase_keys(lake, "t", [b"k"])
    expired = maintain(lake, groups=groups, now_ms=clock.now_ms() + 30 * DAY_MS)
    return {key for one in (merged, forgotten, expired) for key in keys(json.loads(json.dumps(one.to_json())))}


def test_every_key_is_on_the_page() -> None:
    assert [key for key in sorted(told()) if f"`{key}`" not in REPORTS] == []


def test_every_key_on_the_page_is_told() -> None:
    first_columns = re.findall(r"^\| (`[^|]*) \|", REPORTS, re.MULTILINE)
    named = {key for cell in first_columns for key in re.findall(r"`([a-z_]+)`", cell)}
    assert named - told() == set()
