"""`tidelog.Lake`: a lake as users open it, with what can be asked of all of it at one time."""

from typing import TYPE_CHECKING

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
