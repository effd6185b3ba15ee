"""Making a follower a lake of its own: after its source was lost, or in its place while both are there."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ContendedLogError, StorageError, TidelogError
from tidelog.log.config.lake_file import LOOK_EVERY_S, Follows
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.mirror import round_journal
from tidelog.mirror.follower_log import head_of
from tidelog.mirror.lease import FollowerLease, FollowerTakenError
from tidelog.mirror.mirror import Mirror
from tidelog.mirror.tables import rank
from tidelog.mirror.truncation import note_promotion
from tidelog.operations.cuts import hold_kept_cuts
from tidelog.operations.mirrors import read_status
from tidelog.transactions.roll_forward import complete
from tidelog.transactions.transaction_log import TransactionLog

# The last rounds of a promotion in order: the source's writers have stopped, so that few are needed.
_MOST_ROUNDS: Final = 1_000
_PAUSE_S: Final = 0.25


class NotPromotedError(TidelogError):
    """A lake can't be made one of its own: it follows none, or is not whole."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promotion did. Times in ms since the epoch, by the machines' clocks.

    `whole_ms`: the lake is as its source was at that time, or later. `in_order`: the source's writers were stopped and
    everything of it is here; it follows this lake from now on. `completed`: transactions that were decided and are
    applied now. `fenced`: transactional ids whose producers begin again. `epoch`: the brokers' leader epoch now.
    """

    source: str
    whole_ms: int | None
    in_order: bool
    completed: int
    fenced: int
    epoch: int
    took_ms: int

    def to_json(self) -> dict[str, Any]:
        """The figures, for a report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def promote(
    follower: Lake,
    source: Lake | None,
    *,
    force: bool = False,
    said: Callable[[str], None] = lambda _: None,
) -> Promotion:
    """Make a follower a lake of its own. `follower` was opened with `may_change_follower`.

    With `source`, which answers, its writers are stopped first and what they wrote is shipped, so that nothing is lost;
    it follows this lake from then on. Without it what was shipped counts. `force`: also where the follower is not
    whole. Safe to stop anywhere and to begin again. `said` hears of each step.
    Raises `NotPromotedError`, `StorageError`, and what a round of a mirror raises.
    """
    clock = follower.clock
    began_s = clock.elapsed_s()
    follower.reload_config()
    follows = follower.follows()
    if follows is None:
        raise NotPromotedError(f"The lake {follower.uri} follows none: there is nothing to promote.")
    _require_whole(follower, force=force or source is not None)
    follower.follow(Follows(follows.source, promoting=True))
    said("waiting for the mirror to stop")
    with ExitStack() as ends:
        lease = _take(follower, ends)
        return _promote(follower, source, follows, lease, force=force, said=said, began_s=began_s)


def _promote(
    follower: Lake,
    source: Lake | None,
    follows: Follows,
    lease: FollowerLease,
    *,
    force: bool,
    said: Callable[[str], None],
    began_s: float,
) -> Promotion:
    clock = follower.clock
    if source is not None:
        said("stopping the source's writers, and shipping what they wrote")
        try:
            _last_rounds(source, follower, lease)
        except TidelogError as error:
            follower.follow(follows)  # first: the source may be away by now
            try:
                source.follow(None)
            except StorageError as away:
                raise NotPromotedError(
                    f"The source {source.uri} went away when its writers were stopped: {away} Promote again when it is"
                    f" back, or promote without it (--source-is-gone). What had failed before: {error}"
                ) from error
            raise
    round_journal.finish(follower.storage, follower.ids)
    _require_whole(follower, force=force)
    status = read_status(follower.storage)
    note_promotion(follower.storage, follows.source, _heads(follower), clock.now_ms())
    said("completing transactions, and beginning new epochs")
    completed, fenced = end_transactions(follower)
    _hold_kept_cuts(follower, said)
    epoch = ClusterLog(follower).raise_epoch(0 if status is None else status.cluster_epoch)
    follower.follow(None)
    return Promotion(
        follows.source,
        None if status is None else status.whole_ms,
        source is not None,
        completed,
        fenced,
        epoch,
        int((clock.elapsed_s() - began_s) * 1000),
    )


def _hold_kept_cuts(follower: Lake, said: Callable[[str], None]) -> None:
    """Hold what kept cuts need, as far as it is here. A table of cuts that can't be read hinders no promotion."""
    try:
        hold_kept_cuts(follower)
    except TidelogError as error:
        if error.retriable:
            raise
        said(f"leaving kept cuts without what they need: {error}")


def _require_whole(follower: Lake, *, force: bool) -> None:
    status = read_status(follower.storage)
    if force or (status is not None and status.whole_ms is not None):
        return
    raise NotPromotedError(
        f"The lake {follower.uri} is not whole: its mirror has not ended its first round, or began tables again, and"
        " they are of different times. Let the mirror go on ('tidelog mirror start'). Where the source is lost, --force"
        " promotes what is there: a committed offset may be ahead of its topic, and a transaction may be in some of its"
        " topics only."
    )


def _take(follower: Lake, ends: ExitStack) -> FollowerLease:
    """Keep mirrors off the follower until `ends`; one that lives finds the flag within 2 s, and is waited for."""
    while True:
        try:
            return ends.enter_context(FollowerLease(follower.storage, follower.clock, follower.ids.new()))
        except FollowerTakenError:
            follower.clock.sleep(_PAUSE_S)


def _last_rounds(source: Lake, follower: Lake, lease: FollowerLease) -> None:
    source.follow(Follows(follower.uri))
    source.clock.sleep(LOOK_EVERY_S + 1)  # by then every program that has the source open knows
    mirror = Mirror(source, follower, promoting=True, lease=lease)
    try:
        for _ in range(_MOST_ROUNDS):
            done = mirror.round()
            if mirror.problems:
                raise NotPromotedError(
                    f"Some tables of {source.uri} can't be shipped, and writers go on there:"
                    f" {'; '.join(mirror.problems.values())} Mend them; or promote without it (--source-is-gone)."
                )
            if done.whole and not done.entries:
                return
        raise ContendedLogError(f"{source.uri} is still written to, although it follows {follower.uri}. Try again.")
    finally:
        mirror.close()


def _heads(follower: Lake) -> dict[str, int]:
    storage = follower.storage
    tables = [n for n in storage.list_folders("") if rank(n) is not None]
    heads = {name: head_of(storage, name) for name in tables if layout.LOG_FOLDER in storage.list_folders(name)}
    return {name: head for name, head in heads.items() if head is not None}


def end_transactions(follower: Lake) -> tuple[int, int]:
    """Apply what is decided, and fence every producer: (transactions applied, ids fenced)."""
    log = TransactionLog(follower)
    if layout.LOG_FOLDER not in follower.storage.list_folders(layout.TRANSACTIONS_TABLE):
        return 0, 0
    groups = LoggedOffsets(GroupLog(follower))
    done = sum(complete(follower, log, groups, one) for one in log.incomplete())
    return done, log.begin_new_epochs()
