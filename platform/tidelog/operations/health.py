"""What the doctor looks at, gathered once: each part by itself, so that one that fails hides no other."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from packaging.requirements import Requirement

from tidelog.check.store import StoreReport, check_store
from tidelog.cluster.model import BrokerState
from tidelog.cuts.cut_log import CutLog
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import StorageError, TidelogError, UnsupportedFormatError
from tidelog.log.checkpoints.reading import newest_checkpoint_version
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.upkeep.holds import abandoned, read_holds
from tidelog.operations.cluster import silent_brokers
from tidelog.operations.connector_health import ConnectorHealth, SlotHealth, connector_health
from tidelog.operations.cuts import held_files
from tidelog.operations.groups import GroupLag, describe_group
from tidelog.operations.maintenance import newest_whole_run
from tidelog.operations.mirrors import MirrorStatus, read_status
from tidelog.operations.snapshots import LakeSnapshot, SnapshotReader, Space, space_of
from tidelog.operations.topics import live_files
from tidelog.retention.run_history import MaintenanceRun

_AT_ONCE: Final = 16
AskedSlots = Callable[[Lake], Iterable[SlotHealth]]


@dataclass(frozen=True, slots=True)
class TopicHealth:
    """A topic: its files, those far below `segment.bytes`, how many entries its newest checkpoint is behind."""

    files: int
    small: int
    entries_since_checkpoint: int | None = None
    checkpoint_interval: int = 0
    abandoned_holds: int = 0
    config_problem: str = ""


@dataclass(frozen=True, slots=True)
class LakeFacts:
    """What was found at a lake's address. None, or nothing, where it could not be asked.

    `store_problem`, `lake_problem`: why nothing more is known of the store, of the lake; `format_problem`: it is of a
    format that this version does not know. `misfits`: installed packages
    of another version than tidelog works with, (what is there, what is needed). `connectors`: those that are not well;
    `follows`: the source of a lake that follows one, and `mirror`: what its mirror said last. `kept_cuts`: {name: bytes
    of files that stay for it}, and `kept_bytes` of all of them, as several may hold one file. Times in ms since the
    epoch.
    """

    uri: str
    now_ms: int
    store: StoreReport | None = None
    store_problem: str = ""
    lake_problem: str = ""
    format_problem: str = ""
    space: Space | None = None
    config: LakeConfig | None = None
    snapshot: LakeSnapshot | None = None
    topics: Mapping[str, TopicHealth] = field(default_factory=dict)
    groups: Mapping[str, GroupLag] = field(default_factory=dict)
    runs: tuple[MaintenanceRun, ...] = ()
    silent_brokers: Mapping[int, str] = field(default_factory=dict)
    connectors: Mapping[str, ConnectorHealth] = field(default_factory=dict)
    slots: tuple[SlotHealth, ...] = ()
    follows: str = ""
    mirror: MirrorStatus | None = None
    kept_cuts: Mapping[str, int] = field(default_factory=dict)
    kept_bytes: int = 0
    misfits: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def waiting(self) -> MaintenanceRun | None:
        """The newest run of the whole lake, where files that it took out of topics still wait to be deleted."""
        run = newest_whole_run(self.runs)
        if run is None or not run.waiting_files:
            return None
        return None if run.waiting_until_ms is not None and run.waiting_until_ms <= self.now_ms else run


def gather(
    uri: str,
    storage: Callable[[], Storage],
    lake: Callable[[Storage], Lake],
    clock: Clock,
    ids: Ids,
    *,
    try_store: bool = True,
    slots: AskedSlots = lambda _: (),
) -> LakeFacts:
    """Look at what is at an address. Nothing is changed but what the store's trial writes, and removes again.

    `storage` opens the store, `lake` the lake in it. `try_store`: whether the store's trial is made. `slots`: looks at
    those of the databases that the lake's connectors read; what it raises of tidelog's errors hides nothing else.
    """
    bare = LakeFacts(uri, clock.now_ms(), misfits=misfits(requires("tidelog") or ()))
    try:
        store = storage()
        opened = lake(store)
    except StorageError as e:
        return replace(bare, store_problem=str(e))
    except UnsupportedFormatError as e:
        return replace(bare, format_problem=str(e))
    except TidelogError as e:
        return replace(bare, lake_problem=str(e))
    with opened:
        try:
            if try_store:
                bare = replace(bare, store=check_store(store, clock, ids))
        except StorageError as e:
            bare = replace(bare, store_problem=str(e))
        try:
            with SnapshotReader(opened, 0) as reader:
                found = _of_the_lake(replace(bare, space=space_of(store)), opened, reader.read())
            return _with_movers(found, opened, slots)
        except TidelogError as e:
            return replace(bare, lake_problem=str(e))


def _with_movers(facts: LakeFacts, lake: Lake, slots: AskedSlots) -> LakeFacts:
    with suppress(TidelogError):
        groups = facts.snapshot.groups.values() if facts.snapshot else ()
        facts = replace(facts, connectors=connector_health(lake, groups))
    with suppress(TidelogError):
        facts = replace(facts, slots=tuple(slots(lake)))
    with suppress(TidelogError):
        held = held_files(lake, (cut for cut in CutLog(lake).all().values() if cut.kept))
        facts = replace(facts, kept_cuts=held.by_cut, kept_bytes=held.size)
    with suppress(TidelogError):
        follows = lake.follows()
        if follows is not None:
            facts = replace(facts, follows=follows.source, mirror=read_status(lake.storage))
    return facts


def _of_the_lake(bare: LakeFacts, lake: Lake, snapshot: LakeSnapshot) -> LakeFacts:
    running = [broker for broker in snapshot.cluster.live if broker.state is BrokerState.RUNNING]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="doctor") as threads:
        silences = threads.submit(silent_brokers, running)
        topics = threads.map(lambda item: _topic(lake, *item), snapshot.topics.items())
        silent = silences.result()
        return replace(
            bare,
            now_ms=snapshot.at_ms,
            config=lake.config(),
            snapshot=snapshot,
            topics=dict(zip(snapshot.topics, topics, strict=True)),
            groups={name: describe_group(snapshot, name).lag for name in snapshot.groups},
            runs=snapshot.runs,
            silent_brokers={
                broker.id: silent[broker.registration] for broker in running if broker.registration in silent
            },
        )


def _topic(lake: Lake, name: str, state: TopicState) -> TopicHealth:
    problem = ""
    try:
        TopicConfig.parse(state.overrides, defaults=lake.config())
    except TidelogError as e:
        problem = str(e)
    config = TopicConfig.stored(state.overrides, defaults=lake.config())
    files = live_files(state, lake.config())
    behind, gone = None, 0
    with suppress(StorageError):
        behind = state.version - newest_checkpoint_version(lake.storage, name)
        found = read_holds(lake.storage, name)
        now_ms = max([lake.clock.now_ms(), *(one.renewed_ms for one in found)])
        gone = len(abandoned(found, now_ms))
    return TopicHealth(files.number, files.small, behind, config.log_checkpoint_interval, gone, problem)


def misfits(requirements: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Packages that are installed in another version than a requirement, with extras or without, says.

    >>> misfits(["pyarrow<1; extra == 'old'"]).keys(), misfits(["no-such-package>=1"])
    (dict_keys(['pyarrow']), {})
    """
    mismatches = {}
    for requirement in map(Requirement, requirements):
        with suppress(PackageNotFoundError):
            if (there := version(requirement.name)) not in requirement.specifier:
                mismatches[requirement.name] = (there, str(requirement.specifier))
    return mismatches
