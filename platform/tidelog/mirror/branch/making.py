"""Making a branch: a lake that has what another one had at a cut, shares its files, and goes its own way.

The source's logs are held; a cut says up to which version each table goes; files come by links. Meanwhile the branch's
own file says that it is being made, and of what: no program writes to it, and the same call goes on where it was.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.model import Cut
from tidelog.groups.model import GroupView
from tidelog.groups.rules.branches import Ends, begin_anew
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import LakeNotFoundError, LakeNotWholeError, MissingSegmentError
from tidelog.log.base.rate import Rate
from tidelog.log.checkpoints.reading import newest_checkpoint_version, newest_floor
from tidelog.log.config.branch_facts import Branch
from tidelog.log.config.lake_file import tables_among
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.log.upkeep.holds import Holder
from tidelog.mirror.branch.plan import NotABranchError, TableFiles, require_branchable
from tidelog.mirror.branch.tables import FileTaker, read_table
from tidelog.mirror.copying import Copier
from tidelog.mirror.promotion import end_transactions
from tidelog.mirror.tables import rank
from tidelog.operations.branches import BranchNote, note_branch
from tidelog.operations.cuts import take_cut
from tidelog.transactions.model import Verdict
from tidelog.transactions.transaction_log import TransactionLog


@dataclass(frozen=True, slots=True)
class BranchReport:
    """What a branch is, and what it cost. `time_ms`: of the cut, since the epoch.

    `tables`, `files`: how many there are. `linked`: of the files and the log's objects, those that are shared or were
    copied inside the store; `copied_bytes`: of those that passed this process. `fenced`: transactional ids.
    """

    lake: str
    of: str
    cut: str
    time_ms: int
    tables: int
    files: int
    bytes: int
    linked: int
    copied_bytes: int
    fenced: int
    took_ms: int

    def to_json(self) -> dict[str, Any]:
        """The figures, for a report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"cut": self.cut or None}


def make_branch(
    source: Lake, target: Lake, cut: str = "", *, said: Callable[[str], None] = lambda _: None
) -> BranchReport:
    """Make `target` a branch of `source`: as it is now, or was at the cut of that name.

    `target` was opened with `may_change_follower` and `create=None`. Safe to stop anywhere and to call again. `said`
    hears of each step. Raises `NotABranchError` where a lake or another object is there, `UnknownCutError`,
    `OutOfReachError`, `MissingSegmentError`, `LakeFollowsError` for a follower as `take_cut` does, `StorageError`.
    """
    clock = source.clock
    began_s = clock.elapsed_s()
    source.require_lake()
    source.reload_config()
    of_source = source.branch_facts()
    if of_source is not None:
        of_source.require_whole(source.uri)
    require_apart(source.uri, target.uri)
    plan = _begun(source, target, cut)
    by = f"a branch at {target.uri} {source.ids.new()}"
    with Holder(source.storage, clock, source.ids, by) as holder:
        said("holding the source's logs")
        _hold(source, holder, _tables(source))
        again = plan is not None
        if plan is None:
            plan = _begin(source, target, cut)
        tables = plan.tables or {}
        _hold(source, holder, tables)
        said(f"taking {len(tables)} tables")
        files, taker = _take(source, target, tables, again=again)
    said("ending transactions and sessions there")
    _require_going_on(target)
    fenced = end_branch(target)
    _require_going_on(target)
    target.note_branch(plan.made())
    live = {path: table.files[path] for table in files for path in table.live}
    return BranchReport(
        target.uri,
        source.uri,
        plan.cut,
        plan.time_ms,
        len(tables),
        len(live),
        sum(live.values()),
        taker.linked,
        taker.copied_bytes,
        fenced,
        int((clock.elapsed_s() - began_s) * 1000),
    )


def require_apart(source: str, target: str) -> None:
    """Refuse a branch at its source's address, above or below it. Raises `NotABranchError`."""
    ours, theirs = f"{source.rstrip('/')}/", f"{target.rstrip('/')}/"
    if ours.startswith(theirs) or theirs.startswith(ours):
        raise NotABranchError(
            f"A branch of {source} can't be at {target}: one of the two would be in the other. Give an address beside"
            " it."
        )


def _begun(source: Lake, target: Lake, cut: str) -> Branch | None:
    """What the branch is whose making goes on; None where no lake is. Raises `NotABranchError` for any other lake."""
    try:
        target.reload_config()
    except LakeNotFoundError:
        return None
    return require_branchable(target.uri, source.uri, cut, target.branch_facts())


def _tables(lake: Lake) -> list[str]:
    """The tables that a branch takes, as far as they are there now."""
    folders = [name for name in lake.storage.list_folders("") if rank(name) is not None]
    return tables_among(lake.storage, folders)


def _hold(source: Lake, holder: Holder, tables: Iterable[str]) -> None:
    """Keep maintenance from trimming what there is of logs. What goes just before a hold is there, a look tells."""
    for table in tables:
        holder.hold(table, lambda table=table: newest_floor(source.storage, table) + 1)  # type: ignore[misc]


def _begin(source: Lake, target: Lake, name: str) -> Branch:
    """Decide what the branch holds, and create it: from here on it is begun."""
    _require_empty(target)
    cut: Cut = CutLog(source).get(name) if name else take_cut(source)
    note = source.ids.new()
    plan = Branch(source.uri, cut.name, cut.time_ms, note, {table: one.version for table, one in cut.tables.items()})
    note_branch(source.storage, BranchNote(note, target.uri, cut.name, cut.time_ms))
    if target.begin_branch(plan, source.config().overrides):
        return plan
    there = target.branch_facts()  # another process was faster, or this very call was repeated by the store
    return require_branchable(target.uri, source.uri, name, there)


def _require_empty(target: Lake) -> None:
    """Refuse an address below which other objects are: a discard would delete them. Raises `NotABranchError`."""
    strange = next(_objects(target.storage, ""), None)
    # Objects of a lake are another process's, which was faster.
    if strange is not None and not any(info.path == layout.LAKE_FILE for info in target.storage.list_after("")):
        raise NotABranchError(
            f"{strange} is at {target.uri}, which is no lake: a discard of the branch would delete it, too. Give an"
            " address where nothing is, such as a new folder."
        )


def _objects(storage: Storage, folder: str) -> Iterator[str]:
    """What is below a folder, but for what proves the store."""
    yield from (info.path for info in storage.list_after(folder) if not info.path.startswith(layout.PROOF_PREFIX))
    for name in storage.list_folders(folder):
        yield from _objects(storage, f"{folder}/{name}" if folder else name)


def _take(source: Lake, target: Lake, tables: Mapping[str, int], *, again: bool) -> tuple[list[TableFiles], FileTaker]:
    read = [read_table(source.storage, table, version) for table, version in tables.items()]
    copier = Copier(source.storage, target.storage, Rate(source.clock, None))
    taker = FileTaker(source.storage, target.storage, copier, again)
    try:
        sizes = {path: size for table in read for path, size in table.files.items()}
        lost = frozenset().union(*(table.live for table in read)).intersection(taker.take(sizes))
        if lost:
            raise MissingSegmentError(
                f"{min(lost)} is not at {source.uri}, and its log names it: it is lost there. 'tidelog check' says what"
                " else is. The same call goes on when it is restored or given up."
            )
        taker.take_log([path for table in read for path in table.log])
        _put_floors(source.storage, target.storage, read)
    finally:
        copier.close()
    return read, taker


def _put_floors(source: Storage, target: Storage, tables: Iterable[TableFiles]) -> None:
    """Say of each log where it begins, and which checkpoint it begins with."""
    put = []
    for table in tables:
        if table.floor < 0:
            continue
        floor = f"{table.table}/{layout.floor_path(table.floor)}"
        target.put(floor, b"")
        put.append(floor)
        if newest_checkpoint_version(source, table.table) == table.floor + 1:
            hint = f"{table.table}/{layout.LAST_CHECKPOINT}"
            target.put(hint, source.get(hint))
            put.append(hint)
    target.sync(put)


def _require_going_on(target: Lake) -> None:
    """Raise `LakeNotWholeError` where another process has ended the branch, or discards it."""
    target.reload_config()
    facts = target.branch_facts()
    if facts is None or facts.is_whole or facts.discarding:
        raise LakeNotWholeError(
            f"Another process has made the branch at {target.uri} meanwhile, or discards it: this one leaves it alone."
            " 'tidelog lake branches' says what there is."
        )


# --- the end -----------------------------------------------------------------------------------------------


def end_branch(branch: Lake) -> int:
    """Fence producers, and have groups begin without members and at most at their topics' ends; how many are fenced.

    A repeat changes nothing that a reader sees. Raises `StorageError`, `OutcomeUnknownError`.
    """
    _, fenced = end_transactions(branch)
    if layout.OFFSETS_TABLE in branch.storage.list_folders(""):
        log = GroupLog(branch)
        views = log.views()
        waited_for = {key for view in views.values() for key, _ in view.pending}
        verdicts = TransactionLog(branch).verdicts(waited_for) if waited_for else {}
        left_open = frozenset(key for key, verdict in verdicts.items() if verdict is Verdict.OPEN)
        ends, now_ms = _ends(branch, views.values()), branch.clock.now_ms()
        rule = partial(begin_anew, ends=ends, left_open=left_open, now_ms=now_ms)
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
