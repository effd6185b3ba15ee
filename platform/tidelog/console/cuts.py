"""The cuts of a lake: points in time that have names."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import ConsoleError
from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut, UnknownCutError

_MOST: Final = 1_000


def cuts(call: ConsoleCall) -> Any:
    """The cuts, the newest first."""
    found = sorted(CutLog(call.console.lake).all().values(), key=lambda cut: (-cut.time_ms, cut.name))
    sees_topic, sees_group = cache(call.rights.sees_topic), cache(call.rights.sees_group)
    return {"total": len(found), "cuts": [_summary(_seen(cut, sees_topic, sees_group)) for cut in found[:_MOST]]}


def cut(call: ConsoleCall) -> Any:
    """One cut: the offsets of each topic's partitions, and how far each group was; the first thousand of both."""
    try:
        whole = CutLog(call.console.lake).get(call.variables["cut"])
    except UnknownCutError as e:
        raise ConsoleError(404, str(e)) from None
    named = _seen(whole, call.rights.sees_topic, call.rights.sees_group)
    partitions = [
        {"topic": topic, "partition": partition, "version": version, "start": start, "end": end}
        for topic, version, partition, start, end in named.partition_rows[:_MOST]
    ]
    positions = [
        {"group": group, "topic": topic, "partition": partition, "position": position}
        for group, topic, partition, position in named.position_rows[:_MOST]
    ]
    return {**_summary(named), "partitions": partitions, "positions": positions}


def _seen(cut: Cut, sees_topic: Callable[[str], bool], sees_group: Callable[[str], bool]) -> Cut:
    """What a client may know of a cut: its topics, and its groups' positions in them."""
    topics = set(filter(sees_topic, cut.topics))
    groups = filter(sees_group, cut.positions)
    positions = {group: {at: n for at, n in cut.positions[group].items() if at[0] in topics} for group in groups}
    return replace(cut, tables={name: cut.tables[name] for name in topics}, positions=positions)


def _summary(cut: Cut) -> dict[str, Any]:
    return {
        "name": cut.name,
        "time_ms": cut.time_ms,
        "kept": cut.kept,
        "topics": len(cut.topics),
        "offsets": cut.records,
        "groups": len(cut.positions),
    }
