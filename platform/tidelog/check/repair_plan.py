"""Repair, planned: what `check --repair` would do to one topic, as steps and refusals. Nothing is written here.

The rules: what is taken out of the log is copied to `_tidelog/torn` first. An entry's name is never given back,
because a writer that was frozen, or a stream of another engine that has read past it, would meet another entry under
it: the entry is replaced, in one atomic put, by a whole one. What the topic can't be read without stays.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import orjson

from tidelog.check.checkpoints import UNREADABLE, check_hint
from tidelog.check.config import check_metadata
from tidelog.check.files import check_segments
from tidelog.check.listing import LogFiles
from tidelog.check.log_walk import Break, LogWalk
from tidelog.check.report import Kind, Severity
from tidelog.check.rows import file_again
from tidelog.check.state import check_state
from tidelog.check.torn_entry import TornText, completed, emptied, read_torn
from tidelog.log.base.errors import CorruptLogError, ObjectNotFoundError, StorageError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.checkpoints.reading import Checkpoint
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Remove, decode_entry
from tidelog.log.rows.schema import Row
from tidelog.log.rows.state import RowState, as_stored, shape_of
from tidelog.log.state import foreign_entries
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import ObjectInfo, Storage
from tidelog.log.upkeep.topic_files import TopicFiles, old_temporary_files


@dataclass(frozen=True, slots=True)
class Operation:
    """One change to the store, which may be made again.

    `copy`: `path` to `to`, unless that is there. `replace`: `path`, which holds `seen`, by `data`. `write`: `data`
    to `path`. `create`: the same, unless something is there. `delete`: `path`. `discard`: an unfinished file. `take
    back`: commit to the log in the folder `path` what takes back the entries at its head that tidelog did not write.
    """

    what: str
    path: str
    to: str = ""
    seen: bytes = b""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to mend. `where` as in findings; `risk` is "" when there is none. Operations go in their order."""

    topic: str
    where: str
    what: str
    risk: str
    operations: tuple[Operation, ...]

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"topic": self.topic, "where": self.where, "what": self.what, "risk": self.risk}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something broken that repair leaves alone, and why."""

    topic: str
    where: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"topic": self.topic, "where": self.where, "why": self.why}


@dataclass(frozen=True, slots=True)
class Scene:
    """A topic as it is in storage. `now_ms` is the wall clock, for ages and for entries that are written."""

    storage: Storage
    topic: str
    data: TopicFiles
    log: LogFiles
    walk: LogWalk
    now_ms: int

    def path(self, relative: str) -> str:
        """A path below the topic's folder."""
        return f"{self.topic}/{relative}"

    def entry(self, version: int) -> str:
        """An entry's path."""
        return self.path(layout.entry_path(version))


Plan = list[Step | Refusal]

_STOPPED = (
    "Stop every process that has the topic open first: one that has read the entry as it was would go on from it, and"
    " refuse what comes next. Spark and deltalake may have read the lines that are left of it as records."
)


def plan_topic(scene: Scene) -> Plan:
    """The next steps for a topic, and what is left alone. After the steps are taken, plan again."""
    walk = scene.walk
    if walk.not_a_topic or scene.log.is_empty:
        return []
    plan: Plan = []
    for broken in walk.breaks:
        plan.append(_break(scene, broken))
        if isinstance(plan[-1], Step):
            return plan  # what is past it is read again first
    if walk.state is not None and walk.state.foreign and all(b.passed for b in walk.breaks):
        return [*plan, _foreign(scene, walk.state)]
    plan.extend(_checkpoints(scene))
    if not any(isinstance(p, Step) for p in plan):
        plan.extend(_hint(scene))
        plan.extend(_leftovers(scene))
    plan.extend(_lost_segments(scene))
    return plan


# --- entries -------------------------------------------------------------------------------------------------


def _break(scene: Scene, broken: Break) -> Step | Refusal:
    where = f"entry {broken.version}"
    if broken.kind is Kind.ENTRY_GAP:
        why = "What a missing entry held is nowhere else. Restore it from a copy of the log folder."
        if broken.passed:
            why = "Nothing needs the missing entries to open the topic: a checkpoint past them can be read."
        return Refusal(scene.topic, where, why)
    if broken.data is None or broken.kind not in (Kind.ENTRY_TORN, Kind.ENTRY_BROKEN):
        return Refusal(scene.topic, where, f"It is whole, or can't be read: {broken.why}")
    if broken.kind is Kind.ENTRY_TORN:
        step = _complete(scene, broken.version, broken.data)
        if step is not None:
            return step
    if broken.passed and not (_is_consistent(scene, broken.before) and not _is_consistent(scene, scene.walk.state)):
        why = "A checkpoint past it can be read, and may hold what the entry did: nothing needs the entry any more."
        return Refusal(scene.topic, where, f"{why} It goes when the log is trimmed.")
    return _set_aside(scene, broken)


def _foreign(scene: Scene, state: TopicState) -> Step:
    """Take back what tidelog did not write, by an entry that goes through the door as any other does."""
    actions = foreign_entries.take_back(state, scene.now_ms)
    added = sum(isinstance(a, Add) for a in actions)
    removed = sum(isinstance(a, Remove) for a in actions)
    what = (
        f"{foreign_entries.described(state)} Commit an entry that takes it back: {removed} files leave the table,"
        f" {added} segments come back, and with them the configuration and the transaction ids that tidelog goes by."
        " Processes that have the topic open go on by themselves. Rows that the other engine wrote are in no topic:"
        f" until a purge they can be read by time travel to version {state.version}, and be produced again."
    )
    return Step(scene.topic, f"entry {state.foreign[0].version}", what, "", (Operation("take back", scene.topic),))


def _complete(scene: Scene, version: int, data: bytes) -> Step | None:
    """Write a torn entry whole again, when nothing but the end of its last line is lost."""
    text = read_torn(data)
    if not text.complete or not all(_is_there(scene, a.path, a.size) for a in text.adds):
        return None
    aside = _aside(version, data, ".json")
    rows = _rows_again(scene, text)
    if rows is None:
        return None
    whole = completed(text, scene.now_ms, f"repair-{_digest(data)}", rows)
    return Step(
        scene.topic,
        f"entry {version}",
        f"The torn entry lost only a part of its last line: all of its {len(text.actions)} actions are there, and so"
        f" are its segments. Copy it to {aside} and write it whole under the same version, so that no record is lost.",
        "A producer that waited for this entry's answer and repeats its records has them twice.",
        (
            Operation("copy", scene.entry(version), to=scene.path(aside)),
            Operation("replace", scene.entry(version), seen=data, data=whole),
        ),
    )


def _rows_again(scene: Scene, text: TornText) -> tuple[Row, ...] | None:
    """The rows that a torn entry of a table of rows lost, from the file that it added; None when it can't be read."""
    state = scene.walk.state
    if not isinstance(state, RowState):
        return ()
    rows: list[Row] = []
    for add in (a for a in text.adds if a.data_change):
        try:
            with scene.storage.open(scene.path(unquote(add.path))) as source:
                rows.extend(state.kind.schema.to_json(row) for _, row in state.kind.schema.from_file(source))
        except (*UNREADABLE, StorageError):
            return None
    return tuple(rows)


def _set_aside(scene: Scene, broken: Break) -> Step | Refusal:
    """Take an entry that can't be taken, and what others put after it, out of the log."""
    first, topic = broken.version, scene.topic
    last = max(scene.log.newest, first)
    tail: list[tuple[int, bytes]] = []
    for version in range(first, last + 1):
        try:
            data = scene.storage.get(scene.entry(version))
        except ObjectNotFoundError:
            continue
        if _is_ours(version, data):
            built = f"entry {version} of tidelog follows it" if version > first else "tidelog wrote it"
            why = (
                f"It can't be taken out, because {built}: what it held is part of what came after. Restore it from a"
                " copy of the log folder."
            )
            return Refusal(topic, f"entry {first}", why)
        tail.append((version, data))
    stale = [c for c in scene.log.checkpoints if c.version >= first]
    if first == 0 and (stale or len(tail) > 1):
        why = "It is the topic's first entry, and others follow. Restore it from a copy of the log folder."
        return Refusal(topic, "entry 0", why)
    operations: list[Operation] = []
    for version, data in tail:
        operations.append(Operation("copy", scene.entry(version), to=scene.path(_aside(version, data, ".json"))))
    if stale:
        operations.extend(_drop_checkpoints(scene, stale))
    state = broken.before
    left = () if state is None else as_stored(state, foreign_entries.take_back(state, scene.now_ms))
    for version, data in tail:
        operations.append(_take_out(scene, version, data, left if version == tail[0][0] else ()))
        operations.append(Operation("delete", scene.path(f"{layout.LOG_FOLDER}/{version:020d}.crc")))
    return Step(topic, f"entry {first}", _what_is_taken(tail, stale), _STOPPED, tuple(operations))


def _take_out(scene: Scene, version: int, data: bytes, actions: Sequence[Action]) -> Operation:
    path, aside = scene.entry(version), _aside(version, data, ".json")
    if version == 0:
        return Operation("delete", path)  # nothing precedes it that an empty entry could follow
    empty = emptied(scene.now_ms, f"repair-{_digest(data)}", aside, actions)
    return Operation("replace", path, seen=data, data=empty)


def _what_is_taken(tail: list[tuple[int, bytes]], stale: list[Checkpoint]) -> str:
    texts = [read_torn(data) for _, data in tail]
    adds = [a for t in texts for a in t.adds]
    versions = ", ".join(str(version) for version, _ in tail)
    by = "by an entry without actions" if tail[0][0] else "by nothing: it was to create the topic"
    and_checkpoints = f", and set aside the checkpoints {', '.join(str(c.version) for c in stale)}" if stale else ""
    if adds:
        shown = ", ".join(a.path for a in adds[:5]) + (", ..." if len(adds) > 5 else "")
        held = (
            f"It named {len(adds)} segments ({shown}). They stay in storage, but their records are not in the topic;"
            " whether their producer got an acknowledgement is unknown. Produce them again from these files."
        )
    else:
        held = "No segment can be read from it; records that it committed are not in the topic."
    return f"Copy entry {versions} to {layout.ASIDE_FOLDER} and replace it {by}{and_checkpoints}. {held}"


def _is_ours(version: int, data: bytes) -> bool:
    """Whether the entry is a whole one of tidelog's."""
    try:
        return decode_entry(version, data, "").info.request_id is not None
    except CorruptLogError:
        return False


def _is_there(scene: Scene, path: str, size: int) -> bool:
    found = scene.data.data.get(path)
    return found is not None and found.size == size


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _aside(version: int, data: bytes, suffix: str) -> str:
    """Where a file goes, below the topic's folder. Named by its content, so that a repeat finds its own copy."""
    return f"{layout.ASIDE_FOLDER}/{version:020d}-{_digest(data)}{suffix}"


# --- checkpoints ---------------------------------------------------------------------------------------------


def _checkpoints(scene: Scene) -> Iterator[Step | Refusal]:
    """Bad checkpoints go when every entry can be read without them."""
    walk, topic = scene.walk, scene.topic
    stuck = any(not b.passed for b in walk.breaks)
    reads = walk.state is not None and walk.state.version >= max(scene.log.entries, default=-1)
    sound = reads and _is_sound(scene)
    for checkpoint, error in walk.bad.items():
        where = f"checkpoint {checkpoint.version}"
        if error.kind is Kind.FORMAT_UNSUPPORTED:
            yield Refusal(topic, where, f"A newer tidelog may read it. {error.why}")
        elif stuck:
            yield Refusal(topic, where, "It may be needed as long as an entry stops the log.")
        elif not reads:
            yield Refusal(topic, where, "The topic can't be read without it. Restore it from a copy.")
        elif error.kind is Kind.CHECKPOINT_DIFFERS and not sound:
            why = "The entries and it disagree, and what the entries say is not sound: neither can be trusted."
            yield Refusal(topic, where, f"{why} Restore the log folder from a copy.")
        else:
            what = f"Copy the checkpoint to {layout.ASIDE_FOLDER} and delete it: the log reads whole without it."
            yield Step(topic, where, what, "", tuple(_drop_checkpoints(scene, [checkpoint])))


def _is_consistent(scene: Scene, state: TopicState | None) -> bool:
    """Whether what a state says breaks no invariant."""
    if state is None or state.metadata is None:
        return False
    found = check_state(state, scene.topic)
    return all(f.severity is not Severity.ERROR for f in found)


def _is_sound(scene: Scene) -> bool:
    """Whether the topic can be opened and read with what the entries say."""
    state = scene.walk.state
    if state is None or state.metadata is None or not _is_consistent(scene, state):
        return False
    findings = [
        *check_metadata(state.metadata, scene.topic, LakeConfig.parse({}), shape_of(state)),
        *check_segments(scene.storage, scene.topic, state, scene.data),
    ]
    return all(f.severity is not Severity.ERROR for f in findings)


def _drop_checkpoints(scene: Scene, checkpoints: list[Checkpoint]) -> Iterator[Operation]:
    """Copies first, then `_last_checkpoint` away from them, then the deletions."""
    paths = [(c.version, scene.path(f"{layout.LOG_FOLDER}/{name}")) for c in checkpoints for name in c.files]
    for version, path in paths:
        data = scene.storage.get(path)
        suffix = path.rpartition("/")[2][20:]
        yield Operation("copy", path, to=scene.path(_aside(version, data, suffix)))
    yield _new_hint(scene, without={c.version for c in checkpoints})
    for _, path in paths:
        yield Operation("delete", path)


def _new_hint(scene: Scene, without: set[int]) -> Operation:
    """`_last_checkpoint` for the newest good checkpoint; none when there is none."""
    path = scene.path(layout.LAST_CHECKPOINT)
    good = [c for c in scene.walk.good if c.version not in without and c.version > scene.log.floor]
    if not good:
        return Operation("delete", path)
    newest = max(good, key=lambda c: c.version)
    rows = 0
    for name in newest.files:
        part = scene.path(f"{layout.LOG_FOLDER}/{name}")
        with scene.storage.open(part) as source, open_parquet(source, size=None, sealed=False) as file:
            rows += file.metadata.num_rows
    body = {"version": newest.version, "size": rows}
    if len(newest.files) > 1:
        body["parts"] = len(newest.files)
    return Operation("write", path, data=orjson.dumps(body))


def _hint(scene: Scene) -> Iterator[Step]:
    for finding in check_hint(scene.storage, scene.topic, scene.log, scene.now_ms):
        if finding.kind is Kind.HINT_MISSING and not scene.walk.good:
            continue  # no checkpoint that it could name
        operation = _new_hint(scene, without=set())
        what = (
            "Write it for the newest checkpoint." if operation.what == "write" else "Delete it: no checkpoint is left."
        )
        yield Step(scene.topic, finding.where, what, "", (operation,))


# --- the rest ------------------------------------------------------------------------------------------------


def discards(topic: str, unfinished: Iterable[ObjectInfo], now_ms: int) -> Iterator[Step]:
    """Unfinished files go when they are older than an hour."""
    old = old_temporary_files(unfinished, now_ms)
    if old:
        what = f"Delete {len(old)} unfinished files that a crash left behind more than an hour ago."
        yield Step(topic, "folder", what, "", tuple(Operation("discard", o.path) for o in old))


def _leftovers(scene: Scene) -> Iterator[Step]:
    yield from discards(scene.topic, scene.data.unfinished, scene.now_ms)
    loose = [*scene.log.staged, *(scene.log.parts if scene.walk.is_whole else ())]
    old = old_temporary_files(loose, scene.now_ms)
    if old:
        what = f"Delete {len(old)} files of checkpoints that were not finished more than an hour ago."
        yield Step(scene.topic, layout.LOG_FOLDER, what, "", tuple(Operation("delete", o.path) for o in old))


def _lost_segments(scene: Scene) -> Iterator[Step | Refusal]:
    state = scene.walk.state
    if state is not None:
        for finding in check_segments(scene.storage, scene.topic, state, scene.data):
            data = file_again(state, finding.where)
            if data is None:
                yield Refusal(scene.topic, finding.where, f"{finding.what} {finding.todo}")
            else:
                what = "Write the file again: the entry that added it is kept, and says its rows."
                operation = Operation("write", scene.path(unquote(finding.where)), data=data)
                yield Step(scene.topic, finding.where, what, "", (operation,))
