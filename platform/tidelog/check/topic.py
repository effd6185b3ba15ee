"""One topic, for `check`: its files, its log, what the log says, and its records if asked."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from tidelog.check.checkpoints import check_hint
from tidelog.check.config import check_metadata, topic_config
from tidelog.check.files import check_leftovers, check_segments, check_temporary_files
from tidelog.check.listing import LogFiles, list_log, taken_names
from tidelog.check.log_walk import LogWalk, walk_log
from tidelog.check.records import DeepCheck
from tidelog.check.report import CheckedTopic, Finding, Kind, OnProgress
from tidelog.check.rows import RowsCheck, check_offsets
from tidelog.check.state import check_state
from tidelog.groups.store.rows import GroupsFold
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.delta import layout
from tidelog.log.rows.state import RowState, shape_of
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.upkeep.topic_files import TopicFiles, list_files
from tidelog.transactions.model import IntentPart
from tidelog.transactions.roll_forward import IntentMarker
from tidelog.transactions.rows import TransactionsFold

# A log that is trimmed while it is read is read again.
_ATTEMPTS = 3
# How long a checkpoint that is due may take to appear.
_DUE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """How to check a topic: the lake's configuration, whether to read records, the store's time."""

    lake: LakeConfig
    deep: bool
    on_progress: OnProgress | None
    now_ms: int


def read_log(storage: Storage, topic: str) -> tuple[TopicFiles, LogFiles, LogWalk]:
    """A topic's files and its log, as of one moment as far as a store allows: nothing was trimmed meanwhile."""
    attempt = 1
    while True:
        data = list_files(storage, topic)
        log = list_log(storage, topic)
        walk = LogWalk(topic) if log.is_empty else walk_log(storage, topic, log)
        if attempt == _ATTEMPTS or newest_floor(storage, topic) == log.floor:
            return data, log, walk
        attempt += 1


def check_topic(storage: Storage, topic: str, options: TopicOptions) -> tuple[CheckedTopic, list[Finding]]:
    """Everything that is wrong with a topic. Raises only `StorageUnavailableError`."""
    data, log, walk = read_log(storage, topic)
    findings = list(walk.findings)
    state = walk.state or TopicState()
    records = 0
    if log.is_empty and any(path.startswith("partition=") for path in data.data):
        what = "The folder has data files but its log is empty or gone: it is unknown which records are valid."
        todo = f"Restore the folder {topic}/{layout.LOG_FOLDER} from a copy."
        findings.append(Finding(Kind.LOG_MISSING, topic, layout.LOG_FOLDER, what, todo))
    findings.extend(_taken(storage, topic))
    if not walk.not_a_topic and not log.is_empty:
        findings.extend(_log_folder(storage, topic, log, state, options))
        findings.extend(check_temporary_files(topic, (*data.unfinished, *log.staged), options.now_ms))
        if walk.is_whole:
            findings.extend(check_leftovers(topic, data, walk.named, options.now_ms))
        if state.metadata is not None:
            findings.extend(check_metadata(state.metadata, topic, options.lake, shape_of(state)))
            findings.extend(check_state(state, topic))
            findings.extend(missing := list(check_segments(storage, topic, state, data)))
            if options.deep:
                records = _read_records(storage, topic, state, missing, options, findings)
    segments = list(state.all_segments())
    newest = max((c.version for c in walk.good), default=None)
    size = sum(s.size for s in segments)
    return CheckedTopic(
        topic, state.version, walk.entries, newest, state.partitions, len(segments), size, records
    ), findings


def _read_records(
    storage: Storage,
    topic: str,
    state: TopicState,
    missing: Iterable[Finding],
    options: TopicOptions,
    findings: list[Finding],
) -> int:
    skip = (f.where for f in missing if f.kind is Kind.SEGMENT_MISSING)
    if isinstance(state, RowState):
        rows = RowsCheck(storage, topic, options.on_progress)
        findings.extend(rows.run(state, skip))
        fold, state_of = rows.fold(state.kind), cache(partial(_state, storage))
        if isinstance(fold, GroupsFold):
            findings.extend(check_offsets(topic, fold, partial(_end, state_of)))
        if isinstance(fold, TransactionsFold):
            findings.extend(check_intents(topic, fold, storage, state_of))
        return rows.records
    compacted = state.metadata is not None and ("compact" in topic_config(state.metadata, options.lake).cleanup_policy)
    reader = DeepCheck(storage, topic, compacted, options.on_progress)
    findings.extend(reader.run(state, skip))
    return reader.records


def _end(state_of: Callable[[str], TopicState | None], topic: str, topic_id: str, partition: int) -> int | None:
    """A partition's log end offset; None when it is not there any more, or can't be read: its own findings say so."""
    state = state_of(topic)
    if state is None or not state.exists or state.topic_id != topic_id or partition >= state.partitions:
        return None
    return state.end(partition)


def _state(storage: Storage, topic: str) -> TopicState | None:
    """A topic's state; None for what can be no topic."""
    return None if names.why_invalid(topic) else read_log(storage, topic)[2].state


def _taken(storage: Storage, topic: str) -> Iterable[Finding]:
    """Names that the log needs and something else has."""
    for path in taken_names(storage, topic):
        what = "A folder, a link that leads nowhere, or what else is no file has this name: the log can't pass it."
        yield Finding(Kind.NAME_TAKEN, topic, path, what, "Remove or rename it; tidelog puts nothing but files there.")


def _log_folder(
    storage: Storage, topic: str, log: LogFiles, state: TopicState, options: TopicOptions
) -> Iterable[Finding]:
    """The log folder besides its chain of entries."""
    yield from check_hint(storage, topic, log, options.now_ms)
    strays = [v for v in log.entries if v <= log.floor]
    if strays:
        what = (
            f"{len(strays)} entries ({min(strays)} to {max(strays)}) at or below the floor {log.floor}: no program"
            " reads them. They wait for the next trim, or a writer that was frozen put them there."
        )
        yield Finding(Kind.STRAY_ENTRIES, topic, f"floor {log.floor}", what, "Nothing: the next trim deletes them.")
    if log.parts:
        what = f"{len(log.parts)} files of checkpoints that are not whole, {log.parts[0].path} among them."
        todo = "'tidelog check --repair' deletes those older than an hour; no program reads them."
        yield Finding(Kind.CHECKPOINT_INCOMPLETE, topic, log.parts[0].path, what, todo)
    yield from _overdue(topic, log, state, options)


def _overdue(topic: str, log: LogFiles, state: TopicState, options: TopicOptions) -> Iterable[Finding]:
    if state.metadata is None:
        return
    newest = max((c.version for c in log.usable), default=-1)
    interval = topic_config(state.metadata, options.lake).log_checkpoint_interval
    due = log.entries.get(newest + 2 * interval)
    if due is None or due.modified_ms > options.now_ms - _DUE_MS:
        return
    what = (
        f"{state.version - newest} entries since {f'checkpoint {newest}' if newest >= 0 else 'the first'}, but one is"
        f" due every {interval} (log.checkpoint.interval): opening the topic takes longer with each entry."
    )
    todo = (
        "Look for 'Upkeep of ... failed' in the writers' logs. A process that commits to the topic and closes the lake"
        " writes it."
    )
    where = f"checkpoint {newest}" if newest >= 0 else "entry 0"
    yield Finding(Kind.CHECKPOINT_OVERDUE, topic, where, what, todo)


# --- transactions that are committed and not complete --------------------------------------------------------


def check_intents(
    table: str, transactions: TransactionsFold, storage: Storage, state_of: Callable[[str], TopicState | None]
) -> Iterator[Finding]:
    """Each incomplete intent, and whether the files are there that it still needs. `state_of` a topic: None without."""
    for transactional in transactions.incomplete():
        intent = transactional.intent
        if intent is None:
            continue
        marker = IntentMarker.of(transactional.transactional_id, intent)
        left = [p for p in intent.parts if (state := state_of(p.topic)) is not None and marker.is_missing(state, p)]
        gone = [path for part in left for path in _missing(part, storage)]
        where = f"transactional id '{transactional.transactional_id}'"
        what = (
            f"Its transaction {intent.number} of epoch {intent.epoch} is committed, and still to be appended to"
            f" {', '.join(part.topic for part in left) or 'no topic'}"
        )
        if gone:
            todo = "Restore the file from a copy: the committed transaction can't be completed without it."
            yield Finding(Kind.INTENT_FILE_MISSING, table, where, f"{what}; its file {gone[0]} is gone.", todo)
        else:
            todo = "Nothing: its producer's next instance, a reader of its groups, or maintenance completes it."
            yield Finding(Kind.INTENT_UNDONE, table, where, f"{what}.", todo)


def _missing(part: IntentPart, storage: Storage) -> Iterator[str]:
    """Paths of a part's segments that are not in storage."""
    wanted = [f"{part.topic}/{segment.path}" for segment in part.segments]
    folders = {path.rpartition("/")[0] for path in wanted}
    found = {o.path for folder in sorted(folders) for o in storage.list_after(folder)}
    yield from (path for path in wanted if path not in found)
