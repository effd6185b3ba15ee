"""Taking entries back that tidelog did not write (docs/format.md, section 7): pure rules.

Such entries change nothing for tidelog, and readers and writers stop at them. One entry of tidelog's that brings other
engines back to tidelog's state lets readers and writers go on, and touches nothing that was acknowledged.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tidelog.log.base.errors import ForeignEntryError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Entry, Remove, Txn
from tidelog.log.state.producer_memory import parse_app_id
from tidelog.log.state.topic_state import Segment, TopicState


def verify_none_is_foreign(state: TopicState, name: str) -> None:
    """Refuse a head of the log that tidelog did not write."""
    if state.foreign:
        raise ForeignEntryError(f"'{name}': {described(state)} {HOW_TO_MEND}", version=state.foreign[0].version)


HOW_TO_MEND = (
    "Only tidelog may write to its tables: readers and writers stop here, and no record of theirs is lost. 'tidelog"
    " check --repair' says what would be taken back, and takes it back with --execute, while others run."
)


def described(state: TopicState) -> str:
    """Which entries wait to be taken back, and what they are."""
    first, last = state.foreign[0].version, state.version
    which = f"Log entry {first} was" if first == last else f"Log entries {first} to {last} were"
    kinds = dict.fromkeys(entry.touched.by for entry in state.foreign if entry.touched is not None)
    return f"{which} not written by tidelog ({', '.join(kinds)})."


def take_back(state: TopicState, now_ms: int) -> tuple[Action, ...]:
    """The actions after which other engines see what `state` says. `now_ms`: when the files are removed.

    Files that other engines added leave, segments that they removed come back as they were, and so do transaction ids,
    the metaData and the protocol.
    """
    touched = [entry.touched for entry in state.foreign if entry.touched is not None]
    files = {(file.path, file.vector): file for one in touched for file in one.files}
    paths = {path for path, _ in files}
    live = {segment.path: segment for segment in state.all_segments() if segment.path in paths}
    # One file with two deletion vectors is two files to Delta.
    leaving = (file for (path, vector), file in files.items() if path not in live or vector is not None)
    actions: list[Action] = [replace(file, deletion_ms=now_ms) for file in leaving]
    actions.extend(map(_again, live.values()))
    actions.extend(_ids_as_known(state, dict.fromkeys(app_id for one in touched for app_id in one.txns)))
    if state.metadata is not None and any(one.metadata for one in touched):
        actions.append(state.metadata)
    if state.protocol is not None and any(one.protocol for one in touched):
        actions.append(state.protocol)
    return tuple(actions)


def _again(s: Segment) -> Add:
    return Add(s.path, s.partition, s.base_offset, s.size, s.modification_ms, False, s.raw_stats, s.end)


def _ids_as_known(state: TopicState, app_ids: Iterable[str]) -> Iterator[Txn]:
    """The transaction ids as the state has them; -1 says that there is none."""
    producers: Mapping[str, Txn] | None = None
    for app_id in app_ids:
        if app_id.startswith(layout.PRODUCER_PREFIX) and parse_app_id(app_id) is not None:
            producers = producers or {txn.app_id: txn for txn in state.producer_txns()}
            # Of long ago: checkpoints forget it.
            yield producers.get(app_id, Txn(app_id, -1, 0))
        elif (offset := _offset(state, app_id)) is not None:
            yield Txn(app_id, offset)
        else:
            yield state.txns.get(app_id, Txn(app_id, -1))


def _offset(state: TopicState, app_id: str) -> int | None:
    """The offset that a transaction id holds, None when it holds none."""
    for prefix, offsets in state.offsets_by_prefix:
        if app_id.startswith(prefix) and (partition := layout.number(app_id[len(prefix) :])) is not None:
            return offsets.get(partition, 0)
    return None


def problems(state: TopicState, entry: Entry) -> Iterator[str]:
    """Whether `entry`, of tidelog's, takes back all that the entries before it changed, and does nothing else."""
    if _by_what(entry.actions) != _by_what(take_back(state, 0)):
        versions = ", ".join(str(foreign.version) for foreign in state.foreign)
        yield f"it follows entries that tidelog did not write ({versions}), and does not take them back"


def _by_what(actions: tuple[Action, ...]) -> dict[tuple[str, ...], Action]:
    """The actions by what they are about; of a file that leaves nothing else counts."""
    keyed: dict[tuple[str, ...], Action] = {}
    for action in actions:
        kind = type(action).__name__
        if isinstance(action, Remove):
            left = Remove(action.path, 0, 0, 0, 0, action.data_change, action.vector)
            keyed[kind, action.path, action.vector or ""] = left
        elif isinstance(action, Add):
            keyed[kind, action.path] = action
        elif isinstance(action, Txn):
            keyed[kind, action.app_id] = action
        else:
            keyed[(kind,)] = action
    return keyed
