"""Offsets that wait for transactions, for readers of a group's offsets: the log of transactions says which count."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from tidelog.groups.model import GroupView
from tidelog.log.base.errors import UnstableOffsetError
from tidelog.transactions.model import TransactionKey, Verdict

Verdicts = Mapping[TransactionKey, Verdict]


def resolve(
    look: Callable[[], GroupView], ask: Callable[[Collection[TransactionKey]], Verdicts]
) -> tuple[GroupView, Verdicts]:
    """The group as it is when every transaction that has ended counts, and what became of those that offsets wait for.

    `look` gives the group as its log says, `ask` what becomes of transactions, in that order: a transaction that was
    open when the group was read may have ended since, never the other way round. What the log of transactions says no
    more was settled in the group's log before: it is read again, and what still waits there was aborted. What waits for
    an open transaction stays `pending`.
    """
    settled: set[TransactionKey] = set()
    while True:
        view = look()
        keys = dict.fromkeys(key for key, _ in view.pending)
        unsettled = [key for key in keys if key not in settled]
        answers = ask(unsettled) if unsettled else {}
        again = {key for key, verdict in answers.items() if verdict is Verdict.SETTLED}
        if not again:
            verdicts = {key: answers.get(key, Verdict.ABORTED) for key in keys}
            return _counted(view, verdicts), verdicts
        settled |= again


def _counted(view: GroupView, verdicts: Verdicts) -> GroupView:
    if not view.pending:
        return view
    offsets = dict(view.offsets)
    for (key, place), committed in view.pending.items():
        if verdicts[key] is Verdict.COMMITTED:
            offsets[place] = committed
    still_open = {waiting: one for waiting, one in view.pending.items() if verdicts[waiting[0]] is Verdict.OPEN}
    return replace(view, offsets=offsets, pending=still_open)


def unstable(group_id: str, view: GroupView) -> UnstableOffsetError:
    """What is raised while offsets wait for open transactions."""
    (key, (topic, partition)), *_ = view.pending
    return UnstableOffsetError(
        f"Offsets of group {group_id!r} wait for a transaction of {key.transactional_id!r}, that of topic '{topic}',"
        f" partition {partition}, among them: where to go on is known when it ends, at the latest after its"
        " transaction.timeout.ms. Ask again."
    )
