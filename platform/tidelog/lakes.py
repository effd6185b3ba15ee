"""`tidelog.Lake`: a lake as users open it, with what can be asked of all of it at one time."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from tidelog.log import lake as log_lake

if TYPE_CHECKING:
    from tidelog.cuts.model import Cut


class Lake(log_lake.Lake):
    """A lake, opened. All methods may be called from many threads.

    `uri`: a plain path, `file://`, `memory://`, `s3://`, `gs://`, `az://` or `abfss://`. A lake that is not there is
    created; with `create=False`, for what only reads, it is refused, and with None it is created by the first thing
    that is written into it: until then whatever looks into it raises `LakeNotFoundError`. `options` say how to reach an
    object store (`lake.s3.endpoint` ..., see docs/configuration.md); what they leave open, the environment does.
    Use it as a context manager, or call `close` at the end: that waits for what goes on in the background.
    """

    # What these need is loaded when it is used: most programs open a lake to read and write topics.

    def cut(self, name: str, *, keep: bool = False) -> "Cut":
        """Name the lake as it is now: the ends of all topics, and how far every group is. Nothing is copied.

        Each transaction is in the cut as a whole or not at all, and no group's position is past its partition's end.
        `keep`: what it needs is held, and costs space, until `delete_cut`. Raises `tidelog.errors.TidelogError`: where
        the name is taken, or is none; `StorageError`, `ContendedLogError`.
        """
        from tidelog.operations.cuts import create_cut

        return create_cut(self, name, keep=keep)

    def cuts(self) -> "dict[str, Cut]":
        """The cuts that have names, by name."""
        from tidelog.cuts.cut_log import CutLog

        return dict(CutLog(self).all())

    def delete_cut(self, name: str) -> "Cut":
        """Take a cut's name away, and let go of what it held; which it was. Raises `UnknownCutError`."""
        from tidelog.operations.cuts import delete_cut

        return delete_cut(self, name)

    def branch(
        self, address: str | PathLike[str] | None = None, *, at: str = "", options: Mapping[str, Any] | None = None
    ) -> "Lake":
        """Make a lake that has what this one has, or had at the cut named `at`, and open it. No record is copied.

        Files are shared on a local disk, and copied inside an object store. Without `address` the branch is beside this
        lake, and is discarded when it is closed: `with lake.branch() as scratch:`. `options` say how to reach the
        branch's store; this lake's do unless given. Raises `tidelog.errors.TidelogError`: where a lake is at the
        address, `UnknownCutError`, where the cut is out of reach, `StorageError`.
        """
        from tidelog.mirror.branch.making import make_branch
        from tidelog.mirror.branch.plan import scratch_address

        scratch = address is None
        place = scratch_address(self.uri, self.ids.new()[-8:]) if address is None else address
        given: dict[str, Any] = {"options": self.options if options is None else options}
        with log_lake.Lake(place, None, clock=self.clock, ids=self.ids, may_change_follower=True, **given) as target:
            make_branch(self, target, at)
        return (ScratchLake if scratch else Lake)(place, False, clock=self.clock, ids=self.ids, **given)


class ScratchLake(Lake):
    """A branch that is discarded when it is closed."""

    _discarded = False

    def close(self) -> None:
        """Close the lake, and delete all of it. May be called again, also after a call that failed."""
        from tidelog.log.storage import open_storage
        from tidelog.mirror.branch.discarding import discard_branch

        if self._discarded:
            return
        try:
            super().close()
        finally:
            discard_branch(self, lambda uri: open_storage(uri, self.options))
            self._discarded = True
