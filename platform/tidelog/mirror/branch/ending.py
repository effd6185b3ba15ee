"""The last steps of a branch, once it has its tables: transactions end there, and groups begin without members."""

from collections.abc import Iterable
from functools import partial

from tidelog.groups.model import GroupView
from tidelog.groups.rules.branches import Ends, begin_anew
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.delta.layout import OFFSETS_TABLE
from tidelog.log.lake import Lake
from tidelog.mirror.promotion import end_transactions


def end_branch(branch: Lake) -> int:
    """Fence producers, and have groups begin without members and at most at their topics' ends; how many are fenced.

    A repeat changes nothing that a reader sees. Raises `StorageError`, `OutcomeUnknownError`.
    """
    _, fenced = end_transactions(branch)
    if OFFSETS_TABLE in branch.storage.list_folders(""):
        log = GroupLog(branch)
        views = log.views()
        ends, now_ms = _ends(branch, views.values()), branch.clock.now_ms()
        rule = partial(begin_anew, ends=ends, now_ms=now_ms)
        for _, refusal in log.decide_all([(group_id, rule) for group_id in views]):
            if refusal is not None:
                raise refusal
    return fenced


def _ends(branch: Lake, views: Iterable[GroupView]) -> Ends:
    """The ends of all partitions that groups have offsets of."""
    ends: Ends = {}
    for topic in {topic for view in views for topic, _ in view.offsets}:
        state = branch.peek(topic)
        if state is not None:
            ends |= {(topic, p): (state.topic_id, state.end(p)) for p in range(state.partitions)}
    return ends
