"""Lakes and their branches, in memory or in folders."""

from typing import Any

from support.crashes import Crash, CrashAt
from support.logs import FakeClock, memory_lake, open_lake, quiet, values
from support.mirrored_lakes import Hook, empty_store
from support.purges import purge_once
from support.rewrites import merge
from support.transactions import Process

from tidelog.check.lake import check_lake
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.config.branch_facts import Branch
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.mirror.branch.discarding import discard_branch
from tidelog.mirror.branch.making import BranchReport, make_branch
from tidelog.mirror.comparison import differences
from tidelog.operations.branches import BranchNote, branches_of

CONFIG = {"log.min.age.ms": "10000", "file.delete.delay.ms": "1000"}
HOUR_S = 3600


class Branched:
    """A lake, and the store of a branch of it. Lakes are opened again each time, as other processes do."""

    def __init__(self, source: Storage, clock: FakeClock, hook: Hook = quiet) -> None:
        self.source = source
        self.clock = clock
        self.target = empty_store(clock, "branch", hook)

    def lake(self) -> Lake:
        """The source."""
        return open_lake(self.source, self.clock)

    def branch(self) -> Lake:
        """The branch, as any program opens it."""
        return open_lake(self.target, self.clock)

    def process(self) -> Process:
        """A process on the branch."""
        return Process(self.branch())

    def make(self, cut: str = "") -> BranchReport:
        """Make the branch, or go on with it."""
        return make_branch(self.lake(), self._opened(), cut)

    def discard(self) -> None:
        """Discard it."""
        discard_branch(self._opened(create=False), lambda _: self.source)

    def _opened(self, **more: Any) -> Lake:
        return open_lake(self.target, self.clock, may_change_follower=True, **{"create": None, **more})

    def differences(self, *without: str) -> list[str]:
        """What differs between the two, but for lines that begin with one of these."""
        return [line for line in differences(self.lake(), self.branch()) if not line.startswith(without or ("~",))]

    def breaks_off(self, moment: int) -> bool:
        """Make the branch by a process that dies at a call of the branch's store; whether it came to that."""
        self.target.hook = hook = CrashAt(moment)
        try:
            self.make()
        except Crash:
            pass
        finally:
            self.target.hook = quiet
        return hook.crashed

    def facts(self) -> Branch | None:
        """What the branch says of itself; None where it is not there."""
        return self.branch().branch_facts() if list(self.target.list_after("")) else None

    def notes(self) -> list[BranchNote]:
        """What the source has noted."""
        return branches_of(self.source, lambda _: self.target)


def a_lake(**config: str) -> Branched:
    """A topic `t` of three records, the first two merged, and a group that has read one of them."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1, {**CONFIG, **config})
    lake.create_topic("u", 2)
    for text in ("a", "b"):
        lake.topic("t").append(values(text))
    merge(lake, "t")
    lake.topic("t").append(values("c"))
    GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(1)})
    return Branched(storage, clock)


def green(lake: Lake) -> bool:
    report = check_lake(lake, deep=True)
    assert report.green, report.findings
    return True


def trim(pair: Branched) -> None:
    """Let the log of `t` grow old, and trim it: a gap between two entries counts for a tenth of the least age."""
    for _ in range(12):
        pair.clock.pass_s(HOUR_S)
        pair.lake().topic("t").append(values("late"))
    purge_once(pair.lake())
