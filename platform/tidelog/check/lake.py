"""`check`: the invariants of a lake (docs/format.md), read from storage, and their repair.

    report = check_lake(storage, deep=True)       # Report: findings, summaries, .green, .to_dict()
    plan = repair(storage)                        # Repair: the steps it would take, .to_dict()
    done = repair(storage, execute=True)          # takes them; .report is the check afterwards

Both take a `Lake`, or a `Storage` (`open_storage(uri)`) for a lake that does not open. They read the log folder
themselves, every entry that is kept, not through the door, so that they find what a door would stop at or pass
over. A check changes nothing and may run while others write.
"""

from collections.abc import Iterable, Sequence

from tidelog.check.config import check_lake_file
from tidelog.check.files import check_temporary_files
from tidelog.check.repair import Repair, mend
from tidelog.check.repair_plan import Refusal, Step
from tidelog.check.report import (
    CheckedTopic,
    Finding,
    Kind,
    OnProgress,
    Progress,
    Report,
    Severity,
    most_severe_first,
)
from tidelog.check.topic import TopicOptions, check_topic
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.errors import LakeNotFoundError, StorageError, UnknownTopicError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.storage.port import Storage
from tidelog.log.upkeep.topic_files import unfinished_in

__all__ = [
    "CheckedTopic",
    "Finding",
    "Kind",
    "OnProgress",
    "Progress",
    "Refusal",
    "Repair",
    "Report",
    "Severity",
    "Step",
    "check_lake",
    "repair",
]


def check_lake(
    lake_or_storage: Lake | Storage,
    topics: Sequence[str] | None = None,
    deep: bool = False,
    *,
    progress: OnProgress | None = None,
    clock: Clock | None = None,
) -> Report:
    """Check a lake, or some of its topics. `deep` also reads every record; `progress` then hears of each segment.

    Raises `LakeNotFoundError` when nothing is there, `UnknownTopicError` for a topic that has no folder, and
    `StorageUnavailableError`; whatever else is wrong is a finding.
    """
    storage, now_ms = _storage_of(lake_or_storage), _clock_of(lake_or_storage, clock).now_ms()
    return _check(storage, _topics_of(storage, topics), deep, progress, now_ms)


def repair(
    lake_or_storage: Lake | Storage,
    topics: Sequence[str] | None = None,
    execute: bool = False,
    *,
    clock: Clock | None = None,
) -> Repair:
    """Plan how to mend a lake, or some of its topics, and with `execute` do it.

    Without `execute` nothing is written: the steps are tried in memory, and the report is as it would be. Safe to
    kill anywhere and to run again. No process may have a topic open whose entries are changed (a step's `risk`
    says so); entries that tidelog did not write are taken back by a commit, while others run. Lost records are not
    brought back: refusals say what is left alone, and why. Raises as `check_lake` does, and `StorageError`,
    `OutcomeUnknownError` or `ContendedLogError` when a step can't be taken.
    """
    storage, clock = _storage_of(lake_or_storage), _clock_of(lake_or_storage, clock)
    chosen, now_ms = _topics_of(storage, topics), clock.now_ms()
    return mend(storage, chosen, execute, clock, lambda target: _check(target, chosen, False, None, now_ms))


def _check(storage: Storage, chosen: Sequence[str], deep: bool, progress: OnProgress | None, now_ms: int) -> Report:
    config, findings = check_lake_file(storage)
    findings.extend(_names(storage))
    findings.extend(check_temporary_files("", unfinished_in(storage, ""), now_ms))
    summaries = []
    for topic in chosen:
        try:
            summary, topic_findings = check_topic(storage, topic, TopicOptions(config, deep, progress, now_ms))
        except StorageError as e:
            if e.retriable:
                raise
            findings.append(_unreadable(topic, e))
            continue
        summaries.append(summary)
        findings.extend(most_severe_first(topic_findings))
    return Report(storage.uri, deep, tuple(summaries), tuple(findings))


def _unreadable(topic: str, error: StorageError) -> Finding:
    todo = "Give the process the right to list and read the folder; what else is wrong there can't be said before."
    return Finding(Kind.TOPIC_UNREADABLE, topic, "folder", f"The store refuses to list or read it: {error}", todo)


def _storage_of(lake_or_storage: Lake | Storage) -> Storage:
    return lake_or_storage.storage if isinstance(lake_or_storage, Lake) else lake_or_storage


def _clock_of(lake_or_storage: Lake | Storage, clock: Clock | None) -> Clock:
    return clock or (lake_or_storage.clock if isinstance(lake_or_storage, Lake) else SystemClock())


def _topics_of(storage: Storage, topics: Sequence[str] | None) -> list[str]:
    """The folders that hold a table, or those asked for. Raises `LakeNotFoundError`, `UnknownTopicError`."""
    tables = _tables(storage)
    if not tables and not any(o.path == layout.LAKE_FILE for o in storage.list_after("")):
        raise LakeNotFoundError(
            f"There is no lake at {storage.uri} (no {layout.LAKE_FILE}, no topic). Check the address, or create it."
        )
    for topic in topics or ():
        if topic not in tables and not (topic in storage.list_folders("") and _has_data(storage, topic)):
            raise UnknownTopicError(f"Topic '{topic}' does not exist in {storage.uri}, so it can't be checked.")
    return list(tables) if topics is None else list(dict.fromkeys(topics))


def _tables(storage: Storage) -> list[str]:
    return [name for name in storage.list_folders("") if _is_table(storage, name)]


def _is_table(storage: Storage, folder: str) -> bool:
    """Whether a folder holds a table, or may hold one: it can't be listed."""
    try:
        return layout.LOG_FOLDER in storage.list_folders(folder) or _has_data(storage, folder)
    except StorageError as e:
        if e.retriable:
            raise
        return True


def _has_data(storage: Storage, folder: str) -> bool:
    """Whether a folder holds a topic's partitions."""
    return any(n.startswith("partition=") for n in storage.list_folders(folder))


def _names(storage: Storage) -> Iterable[Finding]:
    """Names that could not be created today."""
    tables = _tables(storage)
    for name in tables:
        if why := names.why_invalid(name):
            todo = "Rename the folder and its topic can be opened, or move the folder out of the lake."
            yield Finding(Kind.TOPIC_NAME_INVALID, name, "folder", f"It is no name of a topic: {why}.", todo)
    for i, name in enumerate(tables):
        for other in tables[i + 1 :]:
            if names.collides(name, other):
                what = f"'{name}' and '{other}' differ only in '.' against '_': metrics and table names mix them up."
                todo = "Produce the records of one to a topic with another name, and delete it."
                yield Finding(Kind.TOPIC_NAMES_COLLIDE, name, "folder", what, todo)
