"""The log of cuts, `__cuts`: it alone says which there are."""

from collections.abc import Mapping

from tidelog.cuts import rules
from tidelog.cuts.model import Cut, no_such_cut
from tidelog.cuts.rows import KIND, CutsFold
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.state.topic_state import ROWS


class CutLog:
    """The cuts of a lake. All methods may be called from many threads.

    The table is made by the first cut. Writes raise `OutcomeUnknownError` when the store stops answering: each may be
    repeated, and sees what is there.
    """

    def __init__(self, lake: Lake) -> None:
        self._log = lake.row_log(layout.CUTS_TABLE, KIND)

    def all(self) -> Mapping[str, Cut]:
        """The cuts by name, in the order of their names."""
        return self._log.look(lambda fold: dict(sorted(fold.cuts.items())))

    def get(self, name: str) -> Cut:
        """The cut of a name. Raises `UnknownCutError`."""
        cut = self._log.look(lambda fold: fold.get(name))
        if cut is None:
            raise no_such_cut(name)
        return cut

    def create(self, cut: Cut) -> Cut:
        """Give a cut its name, durably. Raises `CutExistsError`, `InvalidCutNameError`."""
        rules.check_name(cut.name)
        return self._log.commit(lambda fold: rules.decide_create(fold, cut))

    def delete(self, name: str) -> Cut:
        """Take a cut away; which it was. Raises `UnknownCutError`."""
        return self._log.commit(lambda fold: rules.decide_delete(fold, name))

    def tables(self) -> list[RowLog[CutsFold]]:
        """The table itself; none before the first cut."""
        return [self._log] if self._log.fact(ROWS) is not None else []
