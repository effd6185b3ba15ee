"""A topic's log, read entry by entry from the oldest place that is kept, for `check`.

A door starts from the newest checkpoint and stops at the first entry that it can't take. Here every kept entry
is read, each checkpoint on the way is compared with what the entries say, and after an entry that can't be
taken the reading goes on from the next checkpoint, as a door would that starts there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidelog.check.checkpoints import BadCheckpointError, checkpoint_state, differences
from tidelog.check.listing import LogFiles
from tidelog.check.report import Finding, Kind
from tidelog.check.rows import machine_of
from tidelog.log.base.errors import (
    CorruptLogError,
    NotATopicError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
    TornEntryError,
    UnsupportedFormatError,
)
from tidelog.log.checkpoints.reading import Checkpoint, removed_files
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Entry, Metadata, Remove, decode_entry
from tidelog.log.state import foreign_entries
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage


@dataclass(frozen=True, slots=True)
class Break:
    """An entry that can't follow the one before: its version, how, and its bytes if there are any.

    `before`: the state that it can't follow. `passed`: a later checkpoint can be read, so that readers that start
    there don't meet it.
    """

    version: int
    kind: Kind
    why: str
    data: bytes | None
    before: TopicState | None = None
    passed: bool = False


@dataclass(slots=True)
class LogWalk:
    """The result of reading the whole log.

    `state`: as of the last entry that could be taken; None when there was no place to start. `good`, `bad`:
    checkpoints by what became of them, `bad` with the reason. `named`: every file that an entry or a checkpoint
    names.
    """

    topic: str
    state: TopicState | None = None
    entries: int = 0
    findings: list[Finding] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    good: list[Checkpoint] = field(default_factory=list)
    bad: dict[Checkpoint, BadCheckpointError] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    not_a_topic: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every entry was read, so that `named` is complete."""
        return self.state is not None and not self.breaks


def walk_log(storage: Storage, topic: str, files: LogFiles) -> LogWalk:
    """Read a topic's log. Raises only `StorageUnavailableError`; everything else is a finding."""
    return _Walker(storage, topic, files).run()


class _Walker:
    def __init__(self, storage: Storage, topic: str, files: LogFiles) -> None:
        self._storage = storage
        self._topic = topic
        self._files = files
        self._machine = machine_of(storage, topic, files)
        self._ahead = list(files.usable)  # checkpoints that were not looked at yet, by version
        self._walk = LogWalk(topic)

    def run(self) -> LogWalk:
        walk = self._walk
        state = self._first_state()
        while state is not None:
            walk.state = state
            broken = self._follow(state)
            if broken is None:
                break
            if broken.kind is Kind.NOT_A_TOPIC:
                self._find(broken.kind, f"entry {broken.version}", broken.why, "Nothing else of it was checked.")
                walk.not_a_topic = True
                return walk
            state = self._after(broken)
        for checkpoint in self._ahead:  # past the last entry that could be taken
            self._look_at(checkpoint)
        if walk.state is not None and walk.state.foreign:
            where = f"entry {walk.state.foreign[0].version}"
            self._find(Kind.ENTRY_FOREIGN, where, foreign_entries.described(walk.state), foreign_entries.HOW_TO_MEND)
        for checkpoint, error in walk.bad.items():
            todo = _TODO.get(error.kind) or self._todo_for(checkpoint)
            self._find(error.kind, f"checkpoint {checkpoint.version}", error.why, todo)
        return walk

    def _find(self, kind: Kind, where: str, what: str, todo: str) -> None:
        self._walk.findings.append(Finding(kind, self._topic, where, what, todo))

    def _todo_for(self, checkpoint: Checkpoint) -> str:
        if self._walk.state is None:
            return (
                "The topic can't be opened without it: restore it, or the entries before it, from a copy of the"
                " log folder."
            )
        return f"'tidelog check --repair' sets checkpoint {checkpoint.version} aside if the topic opens without it."

    # --- where to begin ------------------------------------------------------------------------------------

    def _first_state(self) -> TopicState | None:
        """The empty state when entry 0 is kept, else that of the oldest checkpoint that can be read."""
        files = self._files
        if files.floor < 0 and 0 in files.entries:
            empty: TopicState = self._machine.empty()
            return empty
        if files.floor < 0 and files.usable:
            self._find(
                Kind.TRIMMED_WITHOUT_FLOOR,
                f"entry {min(files.entries, default=0)}",
                "Entries before it are gone, and no floor says so: another engine's log cleanup removed them. A"
                " writer that was frozen meanwhile could put an entry in their place and take it for committed.",
                "Set delta.enableExpiredLogCleanup=false on the table, and restart every writer that was frozen.",
            )
        elif files.floor >= 0 and not files.usable:
            self._find(
                Kind.FLOOR_WITHOUT_CHECKPOINT,
                f"floor {files.floor}",
                "No checkpoint past the floor is there: the entries up to it may be gone, so the topic can't be read.",
                "Restore a checkpoint from a copy of the log folder; the segments are still there.",
            )
        elif not files.usable:
            self._find(
                Kind.LOG_START_MISSING,
                "entry 0",
                "The log has no first entry and no checkpoint: another program removed them, so it can't be read.",
                "Restore the log folder from a copy; the segments are still there.",
            )
        return self._next_checkpoint(0)

    def _next_checkpoint(self, at_least: int) -> TopicState | None:
        """The state of the next checkpoint that can be read."""
        while self._ahead:
            checkpoint = self._ahead.pop(0)
            if checkpoint.version < at_least:
                self._look_at(checkpoint)
            elif (state := self._look_at(checkpoint)) is not None:
                return state
        return None

    def _look_at(self, checkpoint: Checkpoint) -> TopicState | None:
        """Read a checkpoint and note whether it is good."""
        try:
            state = checkpoint_state(self._storage, self._topic, checkpoint, self._machine)
        except BadCheckpointError as e:
            self._walk.bad[checkpoint] = e
            return None
        except ObjectNotFoundError:
            return None  # deleted since the folder was listed
        return state if self._note_good(checkpoint, state) else None

    def _note_good(self, checkpoint: Checkpoint, state: TopicState) -> bool:
        """Note the files that it names; whether it can be read whole."""
        try:
            removed = [path for path, _ in removed_files(self._storage, self._topic, checkpoint)]
        except ObjectNotFoundError:  # deleted since it was read
            removed = []
        except CorruptLogError as e:  # readers take the state's columns alone
            self._walk.bad[checkpoint] = BadCheckpointError(Kind.CHECKPOINT_UNREADABLE, str(e))
            return False
        self._walk.good.append(checkpoint)
        self._walk.named.update(s.path for s in state.all_segments())
        self._walk.named.update(removed)
        return True

    # --- entry by entry ------------------------------------------------------------------------------------

    def _follow(self, state: TopicState) -> Break | None:
        """Apply entries until the head (None), or until one can't be taken."""
        while True:
            version = state.version + 1
            path = f"{self._topic}/{layout.entry_path(version)}"
            data = None
            try:
                data = self._storage.get(path)
                self._take(state, decode_entry(version, data, path))
            except ObjectNotFoundError:
                if version > self._files.newest:
                    return None
                return Break(version, Kind.ENTRY_GAP, self._gap(version), None)
            except StorageUnavailableError:
                raise
            except NotATopicError as e:
                return Break(version, Kind.NOT_A_TOPIC, str(e), data)
            except UnsupportedFormatError as e:
                return Break(version, Kind.FORMAT_UNSUPPORTED, str(e), data)
            except TornEntryError as e:
                return Break(version, Kind.ENTRY_TORN, str(e), data)
            except CorruptLogError as e:
                return Break(version, self._kind(version, data or b""), str(e), data)
            except StorageError as e:
                return Break(version, Kind.ENTRY_UNREADABLE, str(e), None)
            self._compare(state)

    def _kind(self, version: int, data: bytes) -> Kind:
        """Whether an entry that breaks the format belongs to another topic."""
        try:
            actions = decode_entry(version, data, "").actions
        except CorruptLogError:
            return Kind.ENTRY_BROKEN
        names = {a.name for a in actions if isinstance(a, Metadata)}
        return Kind.LOG_OF_ANOTHER_TOPIC if names - {self._topic, ""} else Kind.ENTRY_BROKEN

    def _take(self, state: TopicState, entry: Entry) -> None:
        self._machine.verify(state, entry)
        files = [a for a in entry.actions if isinstance(a, Add | Remove)]
        self._walk.named.update(f.path for f in (*files, *(entry.touched.files if entry.touched else ())))
        state.apply(entry)
        self._walk.entries += 1

    def _compare(self, state: TopicState) -> None:
        """Compare the checkpoint of this version, if there is one, with what the entries say."""
        while self._ahead and self._ahead[0].version <= state.version:
            checkpoint = self._ahead.pop(0)
            held = self._look_at(checkpoint)
            if held is None or checkpoint.version < state.version:
                continue
            different = differences(held, state)
            if different:
                self._walk.good.remove(checkpoint)
                why = f"It does not say what the log's entries up to there say: {'; '.join(different)}."
                self._walk.bad[checkpoint] = BadCheckpointError(Kind.CHECKPOINT_DIFFERS, why)

    # --- past an entry that can't be taken -------------------------------------------------------------------

    def _gap(self, version: int) -> str:
        files = self._files
        later = [v for v in (*files.entries, *(c.version for c in files.checkpoints)) if v > version]
        last = min(later, default=version + 1) - 1
        alone = last <= version
        which = f"Entry {version} is" if alone else f"Entries {version} to {last} are"
        return f"{which} missing while later ones are there: another program removed {'it' if alone else 'them'}."

    def _after(self, broken: Break) -> TopicState | None:
        """Note the break, and find the checkpoint past it to go on from."""
        walk, before = self._walk, self._walk.state
        state = self._next_checkpoint(broken.version)
        passed = state is not None
        walk.breaks.append(replace(broken, before=before, passed=passed))
        if state is not None:
            effect = f"Readers that start from checkpoint {state.version} don't meet it; time travel and streams do."
            if before is not None:
                self._check_fall(before, state)
        else:
            left = sum(1 for v in self._files.entries if v > broken.version)
            effect = f"Readers and writers stop here{f'; {left} entries follow' if left else ''}."
        kind = Kind.ENTRY_GAP_PASSED if broken.kind is Kind.ENTRY_GAP and passed else broken.kind
        self._find(kind, f"entry {broken.version}", f"{broken.why} {effect}", _TODO[kind])
        return state

    def _check_fall(self, before: TopicState, after: TopicState) -> None:
        """Within one topic id no offset ever falls."""
        if before.topic_id != after.topic_id:
            return
        for name, old, new in (("start", before.starts, after.starts), ("end", before.ends, after.ends)):
            for p, offset in sorted(old.items()):
                if new.get(p, 0) < offset:
                    self._find(
                        Kind.OFFSETS_FELL,
                        f"partition {p}",
                        f"Its {name} offset is {offset} at entry {before.version} and {new.get(p, 0)} at checkpoint"
                        f" {after.version}: within one topic id it never falls, else offsets are given twice.",
                        "Stop the writers and restore the log folder from a copy.",
                    )


_REPAIR = "'tidelog check --repair' says what it holds, and takes it out if nothing was built on it."
_TODO: Mapping[Kind, str] = {
    Kind.ENTRY_TORN: _REPAIR,
    Kind.ENTRY_BROKEN: f"Stop the tool that wrote it: only tidelog may write to its tables. {_REPAIR}",
    Kind.LOG_OF_ANOTHER_TOPIC: "Give the folder its name back; a topic is copied by producing its records to another.",
    Kind.ENTRY_UNREADABLE: "Give the process the right to read it, or restore it from a copy of the log folder.",
    Kind.ENTRY_GAP: "Restore the missing entries from a copy of the log folder; write nothing before that.",
    Kind.ENTRY_GAP_PASSED: "Nothing needs it once the entries below the newest checkpoint are trimmed.",
    Kind.FORMAT_UNSUPPORTED: "Use a tidelog that knows it, or copy the topic to a new one.",
}
