"""The port by which what is staged gets into the log: as an entry of its own, with others' shares, or elsewhere."""

from concurrent.futures import Future
from typing import Protocol

from tidelog.log.delta.actions import Metadata
from tidelog.log.rules.appends import AppendAnswer, StagedShare


class ShareCommitter(Protocol):
    """Commits what was staged of one topic. For any thread."""

    def digest(self, metadata: Metadata | None) -> str:
        """`configuration_digest` of the topic's metadata."""

    def hand_over(self, share: StagedShare) -> Future[AppendAnswer] | None:
        """Have another process commit a share, and get its answer later; None: it is to be committed here.

        The answer is `elsewhere`, so the log is yet to be looked at. REFUSED and STALE: the other process will not
        commit the share any more, and it is to be committed here. UNKNOWN: the other process gave no answer; it has
        committed the share, or may do so at any time, or never.
        """

    def commit(self, share: StagedShare, timeout_s: float) -> AppendAnswer | Future[AppendAnswer]:
        """Commit a share here, or have it wait for the entry after the one that another thread commits.

        `timeout_s`: how long it may take. Errors of the log and of the store are answers; raises for the topic that
        can't be opened.
        """
