"""Whatever files a lake has, check and repair say something and repair invents nothing."""

from hypothesis import given
from hypothesis import strategies as st
from support.corruptible_lakes import CorruptibleLake, kinds, objects
from support.logs import read

from tidelog.check.lake import repair
from tidelog.log.base.errors import TidelogError

PATIENTS = {
    "entries": lambda: CorruptibleLake(3),
    "a checkpoint and entries": lambda: CorruptibleLake(4).checkpoint(3),
    "trimmed": lambda: CorruptibleLake(4).checkpoint(2).trim().checkpoint(3),
}
# The same draws must mean the same although names and sizes differ a little from lake to lake.
SHARE = st.floats(0, 1, exclude_max=True)


def records(corruptible: CorruptibleLake) -> list[list[str]] | None:
    """What a reader gets of both partitions, None when the topic does not open."""
    try:
        lake = corruptible.reopened()
        return [read(lake, "orders", p) for p in range(2)]
    except (TidelogError, ValueError, KeyError, TypeError, AttributeError):
        return None


@st.composite
def damaged(draw: st.DrawFn) -> CorruptibleLake:
    """A lake with one object cut, changed at one place, emptied, deleted, or put in the place of another."""
    corruptible = PATIENTS[draw(st.sampled_from(sorted(PATIENTS)))]()
    store = corruptible.storage.inner
    all_objects = objects(store)
    paths = sorted(all_objects)
    path = paths[int(draw(SHARE) * len(paths))]
    data = all_objects[path]
    at = int(draw(SHARE) * len(data))
    match draw(st.sampled_from(["cut", "change", "delete", "swap", "insert"])):
        case "cut":
            store.put(path, data[:at])
        case "change":
            store.put(path, data[:at] + draw(st.binary(min_size=1, max_size=9)) + data[at + 1 :])
        case "insert":
            store.put(path, data[:at] + draw(st.sampled_from([b"\n", b'"', b"-", b"9", b"{}", b"\0"])) + data[at:])
        case "delete":
            store.delete(path)
        case _:
            # Never a segment: one under another's name and of its size looks the same to every check.
            others = [p for p in paths if "partition=" not in p]
            store.put(others[int(draw(SHARE) * len(others))], all_objects[others[int(draw(SHARE) * len(others))]])
    return corruptible


@given(damaged())
def test_any_damage_is_survived(corruptible: CorruptibleLake) -> None:
    before, read_before = kinds(corruptible.check(deep=True)), records(corruptible)
    plan = repair(corruptible.storage, clock=corruptible.clock)
    done = repair(corruptible.storage, execute=True, clock=corruptible.clock)
    assert plan.report.findings == done.report.findings
    assert done.report.to_dict()
    after, read_after = kinds(corruptible.check(deep=True)), records(corruptible)
    assert after <= before
    if read_before is not None:
        assert read_after is not None
    for got, written in zip(read_after or [], ["ab" * 4, "cd" * 4], strict=False):
        assert "".join(got) in written
    if not before:
        assert (read_after, done.steps) == (read_before, ())
