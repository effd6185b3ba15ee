"""Topics of a lake that are copies of Kafka's, and groups' offsets, committed once the records before them are here."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Final, TypeVar

import orjson

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.appends.mirrored import CopiedTopic
from tidelog.log.base.errors import ObjectNotFoundError, StorageError, TidelogError
from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.mirror.kafka.rules import Origin, config_changes, gap, plan_offsets, translated, why_refused
from tidelog.mirror.kafka.source import KafkaSource, KafkaSourceError, Place, SourceOffset, SourceTopic

logger = logging.getLogger("tidelog.mirror.kafka")

R = TypeVar("R")

# Which topic of which cluster a topic here copies.
_ORIGINS: Final = f"{MIRROR_FOLDER}/kafka"
# In place of a group's id.
_ALL: Final = "*"


@dataclass
class KafkaTopics:
    """The topics that a mirror copies, whose whole names `wanted` matches (None: all). For one thread.

    `at`: how far each partition is copied. `problems`: topics that are not copied, and why. `left_out`: {topic: {key of
    its configuration: why it has none here}}. `lost`: {partition: offsets that the source deleted before they were
    copied}. `ends`: (log start, end of what is committed) at the source, as last seen.
    """

    source: KafkaSource
    lake: Lake
    wanted: re.Pattern[str] | None = None
    at: dict[Place, int] = field(default_factory=dict)
    ends: dict[Place, tuple[int, int]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Mapping[str, str]] = field(default_factory=dict)
    lost: dict[Place, tuple[int, int]] = field(default_factory=dict)
    _cluster: str = ""
    _open: dict[str, CopiedTopic] = field(default_factory=dict)
    _noted: dict[str, Origin | None] = field(default_factory=dict)

    def look(self) -> bool:
        """Bring the lake's topics to what the source has; whether other partitions are to be followed than before.

        Raises `KafkaSourceError`, and `StorageError` while the store is away.
        """
        self._cluster = self._cluster or self.source.cluster_id()
        topics = {
            name: topic
            for name, topic in sorted(self.source.topics().items())
            if self.wanted is None or self.wanted.fullmatch(name)
        }
        before, stopped = set(self.at), dict(self.problems)
        self.problems.clear()
        positions: dict[Place, int | None] = {}
        for name, topic in topics.items():
            positions |= self._try(name, partial(self._opened, topic), old_reason=stopped.get(name)) or {}
        for name in {name for name, _ in before} - topics.keys():
            logger.warning("Topic '%s' is not at the source any more; what was copied of it stays.", name)
            self._open.pop(name, None)
        self.ends = self.source.ends(positions)
        self.at = {place: at for place, at in positions.items() if at is not None and place in self.ends}
        self._begin({place for place, at in positions.items() if at is None})
        self._raise_starts()
        return set(self.at) != before

    def stop(self, name: str, why: str, *, old_reason: str | None = None) -> None:
        """Copy a topic no further until the next look."""
        if why != old_reason:
            logger.warning("Topic '%s' is not copied. %s", name, why)
        self.problems[name] = why
        self._open.pop(name, None)
        self.at = {place: at for place, at in self.at.items() if place[0] != name}

    def opened(self, name: str) -> CopiedTopic:
        """A topic that is copied."""
        return self._open[name]

    def renew(self, name: str) -> None:
        """Look again how far a topic is copied: another process copies, too, or an append had no answer."""
        positions = self._try(name, self._open[name].positions) or {}
        for (topic, partition), at in list(self.at.items()):
            if topic == name:
                self.at[topic, partition] = positions.get(partition) or at

    def _try(self, name: str, work: Callable[[], R], *, old_reason: str | None = None) -> R | None:
        """The result of work on a topic; what no later round can mend stops this topic, and no others."""
        try:
            return work()
        except TidelogError as e:
            if e.retriable or isinstance(e, StorageError):
                raise
            self.stop(name, str(e), old_reason=old_reason)
            return None

    def _opened(self, topic: SourceTopic) -> dict[Place, int | None]:
        """How far each partition of a topic is copied, once it is there as the source has it."""
        name = topic.name
        state = self.lake.peek(name)
        there = None if state is None else (state.topic_id, state.partitions)
        if name not in self._noted:
            self._noted[name] = noted_origin(self.lake.storage, name)
        noted = self._noted[name]
        why = why_refused(name, topic, self._cluster, there, noted)
        if why:
            self.stop(name, why)
            return {}
        config = translated(topic.config)
        if config.left_out != self.left_out.get(name, {}):
            self.left_out[name] = config.left_out
            for key, reason in config.left_out.items():
                logger.warning("Topic '%s': %s is not set here. %s", name, key, reason)
        if state is None:
            topic_id = self.lake.create_topic(name, topic.partitions, config.values).id
        else:
            topic_id = state.topic_id
            CopiedTopic(self.lake.topic(name), self.lake.ids).positions()  # a topic that is no copy is left as it is
            changes = config_changes(topic, config.values, state.overrides)
            grown = topic.partitions if topic.partitions != state.partitions else None
            if changes or grown:
                self.lake.alter_topic(name, grown, changes)
        origin = Origin(self._cluster, topic.id, topic_id)
        if origin != noted:
            note_origin(self.lake.storage, name, origin)
            self._noted[name] = origin
        if name not in self._open:
            self._open[name] = CopiedTopic(self.lake.topic(name), self.lake.ids)
        return {(name, p): at for p, at in self._open[name].positions().items()}

    def _begin(self, new: set[Place]) -> None:
        """Partitions that are new begin where they begin at the source."""
        runs: dict[str, list[int]] = {}
        for place in sorted(new & self.ends.keys()):
            start = self.ends[place][0]
            self.at[place] = start
            if start:
                runs.setdefault(place[0], []).append(place[1])
        for name, partitions in runs.items():
            starts = {p: self.ends[name, p][0] for p in partitions}
            beginnings = [gap(p, start, start) for p, start in starts.items()]
            self._try(name, partial(self._open[name].append, beginnings))

    def _raise_starts(self) -> None:
        """What the source deleted from the beginning of its partitions leaves here, too."""
        raised: dict[str, dict[int, int]] = {}
        for (name, partition), at in self.at.items():
            start = min(self.ends[name, partition][0], at)
            state = self.lake.log(name).door.state
            if start > state.start(partition) and self.lake.topic_config(name).cleanup_policy != ("compact",):
                raised.setdefault(name, {})[partition] = start
        for name, starts in raised.items():
            self._try(name, partial(self.lake.delete_records, name, starts))

    def jump(self, place: Place) -> None:
        """Go on where the source begins, when it deleted what was to be copied next; a shorter log stops the topic.

        Raises as `look`.
        """
        name, partition = place
        bounds = self.source.ends([place]).get(place)
        if bounds is None:  # the next look tells what became of it
            return
        (start, end), at = bounds, self.at[place]
        if at < start:
            logger.warning(
                "Topic '%s', partition %d: the source deleted offsets %d to %d before they were copied. They are a gap"
                " here.",
                name,
                partition,
                at,
                start,
            )
            self._try(name, partial(self._open[name].append, [gap(partition, at, start)]))
            self.lost[place] = (self.lost.get(place, (at, 0))[0], start)
            if place in self.at:
                self.at[place] = start
        elif at > end:
            self.stop(
                name,
                f"Topic '{name}', partition {partition} ends at offset {end} at the source, and was copied up to {at}:"
                " the source lost records, as after an unclean election. Copy to another lake, or delete the topic"
                " here.",
            )


def noted_origin(storage: Storage, topic: str) -> Origin | None:
    """The note of a topic; None where there is none, or it can't be read: then the log alone says what is a copy."""
    try:
        return Origin(**orjson.loads(storage.get(f"{_ORIGINS}/{topic}")))
    except (ObjectNotFoundError, ValueError, TypeError):
        return None


def note_origin(storage: Storage, topic: str, origin: Origin) -> None:
    """Write it, before the first record is copied."""
    path = f"{_ORIGINS}/{topic}"
    storage.put(path, orjson.dumps(asdict(origin)))
    storage.sync([path])


@dataclass
class KafkaGroups:
    """The groups of a source. `problems`: why a group's offsets are not here. `committed` counts offsets.

    For one thread.
    """

    source: KafkaSource
    lake: Lake
    committed: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    _seen: Mapping[str, Mapping[Place, SourceOffset]] = field(default_factory=dict)
    _refused: Mapping[str, str] = field(default_factory=dict)
    _waiting: dict[str, Mapping[Place, SourceOffset]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._log = GroupLog(self.lake)

    def look(self) -> None:
        """Read what the groups committed. Where that is refused, records are copied all the same."""
        try:
            groups = self.source.groups()
        except KafkaSourceError as e:
            if str(e) != self.problems.get(_ALL):
                logger.warning("Groups' offsets are not copied. %s", e)
            self.problems[_ALL] = str(e)
            return
        self.problems.pop(_ALL, None)
        for group, offsets in groups.offsets.items():
            if offsets != self._seen.get(group):
                self._waiting[group] = offsets
        for group in self._refused.keys() - groups.refused.keys():
            self.problems.pop(group, None)
        for group, why in groups.refused.items():
            if why != self._refused.get(group):
                logger.warning("Offsets of group '%s' are not copied. %s", group, why)
            self.problems[group] = why
        self._seen, self._refused = groups.offsets, groups.refused

    def commit(self, ends: Mapping[Place, int]) -> int:
        """Commit what is due; how many offsets wait for records that are not copied yet.

        `ends`: how far each partition is copied. Raises `StorageError` while the store is away.
        """
        for group, offsets in list(self._waiting.items()):
            try:
                plan = plan_offsets(offsets, self._log.view(group), ends)
                if plan.commit:
                    self._log.commit_offsets(group, plan.commit)
                self.problems.pop(group, None)
            except TidelogError as e:
                if e.retriable:
                    raise
                logger.warning("Offsets of group '%s' are not copied. %s", group, e)
                self.problems[group] = str(e)
                del self._waiting[group]
                continue
            self.committed += len(plan.commit)
            if plan.wait:
                self._waiting[group] = plan.wait
            else:
                del self._waiting[group]
        return sum(map(len, self._waiting.values()))
