"""What a transaction has staged in its topics: written segments that no reader sees until it is committed."""

import threading
from collections.abc import Iterable
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.errors import TopicChangedError
from tidelog.log.delta.actions import Metadata
from tidelog.log.door.commit_objects import make_durable, require_stored
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.rules.topics import require_partition, require_topic
from tidelog.log.segments.staging import Stager
from tidelog.log.segments.writer import Staged
from tidelog.log.topic import Topic
from tidelog.log.typed.facts import only_grown, typing_of
from tidelog.transactions.model import IntentPart


@dataclass(slots=True)
class _Staging:
    """One topic's part: `stager` has the records staged here, `ready` are segments that are written, by others too.

    `metadata`: the topic's when the last record was staged here. `earlier`: stagers of a typed topic from before its
    table knew more; they are finished. `unseen`: segments of others that were not looked up
    yet. `lasting`: all that is ready survives a power loss.
    """

    topic: Topic
    topic_id: str
    stager: Stager | None = None
    earlier: list[Stager] = field(default_factory=list)
    metadata: Metadata | None = None
    ready: list[Staged] = field(default_factory=list)
    unseen: list[Staged] = field(default_factory=list)
    finished: bool = False
    lasting: bool = False


class StagedTopics:
    """The parts of one transaction. Not for several threads at once, but for `add` to different topics.

    `helpers` write segments beside the caller.
    """

    def __init__(self, lake: Lake, helpers: Executor | None = None) -> None:
        self._lake = lake
        self._helpers = helpers
        self._topics: dict[str, _Staging] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._topics)

    def add(
        self, topic: str, table: pa.Table, partitions: npt.NDArray[np.int32], compression: str | None = None
    ) -> None:
        """Stage records. `table`: columns as `Topic.append` takes them; `partitions`: one for each row.

        Raises `UnknownTopicError`, `TopicChangedError`, `UnknownPartitionError`, `InvalidRecordError`,
        `RecordTooLargeError`, `InvalidTimestampError`, `StorageError`.
        """
        if not table.num_rows:
            return
        staging = self._staging(topic)
        if int(partitions.max()) >= staging.topic.known.partitions:
            staging.topic.state()  # it may have grown
        staging.topic.grow_for(table)
        state = staging.topic.known
        require_topic(state, topic, staging.topic_id)
        for partition in np.unique(partitions).tolist():
            require_partition(state, topic, partition)
        self._require_unchanged(staging)
        config, now_ms = staging.topic.config(), staging.topic.now_ms()
        typing = typing_of(state.metadata)
        records = to_records(table, topic, config, now_ms, typing=typing)
        if staging.stager is not None and staging.stager.typing is not typing:
            staging.ready.extend(staging.stager.finish())
            staging.earlier.append(staging.stager)
            staging.stager = None
        if staging.stager is None:
            staging.stager = staging.topic.stager(compression, helpers=self._helpers)
        staging.metadata = state.metadata
        staging.stager.add(records, partitions)

    def add_staged(self, topic: str, staged: Iterable[Staged]) -> None:
        """Take segments that others (Spark's tasks) have written for the topic. Raises `TopicChangedError`."""
        staging = self._staging(topic)
        for segment in staged:
            if segment.topic_id != staging.topic_id:
                raise TopicChangedError(
                    f"Topic '{topic}' was deleted and created again since segment {segment.path} was written (its id"
                    f" was {segment.topic_id}): records of one topic id mean nothing for another. Write them again."
                )
            staging.ready.append(segment)
            staging.unseen.append(segment)
            staging.lasting = False

    def _staging(self, name: str) -> _Staging:
        with self._lock:
            staging = self._topics.get(name)
            if staging is None:
                self._lake.permit(name)()
                topic_id = self._lake.ensure_topic(name)
                staging = self._topics[name] = _Staging(self._lake.topic(name), topic_id)
        return staging

    def _require_unchanged(self, staging: _Staging) -> None:
        """Refuse to go on when the configuration changed that records staged here were checked against.

        They are not at hand to be staged again. Others' were checked where they were written, as late as that was. A
        typed topic whose table knows more schemas by now takes what was staged before.
        """
        if staging.stager is not None and not only_grown(staging.metadata, staging.topic.known.metadata):
            raise TopicChangedError(
                f"Topic '{staging.topic.name}' was altered since the transaction's first records were staged, which"
                " were checked against its configuration of then. Abort the transaction, and begin it again."
            )

    def parts(self) -> tuple[IntentPart, ...]:
        """All that is staged, durable: it survives a power loss from here on.

        Everything is validated: raises `TopicChangedError` for a topic that is gone, `MissingSegmentError` for a
        segment that is, `StorageError`.
        """
        self._finish_all()
        parts = []
        for name, staging in self._topics.items():
            if staging.ready:
                state = staging.topic.state()
                require_topic(state, name, staging.topic_id)
                self._require_unchanged(staging)
                for segment in staging.ready:
                    require_partition(state, name, segment.partition)
                parts.append(IntentPart(name, staging.topic_id, tuple(staging.ready)))
        return tuple(parts)

    def _finish_all(self) -> None:
        """Finish every topic's part; when an error is raised, none is being written any more."""
        mine: list[_Staging] = []
        begun: list[Future[None]] = []
        for staging in self._topics.values():
            # A large one asks helpers for help: helpers that wait for helpers might all be waiting.
            alone = staging.stager is None or not staging.stager.is_small
            if self._helpers is None or not mine or alone:
                mine.append(staging)
            else:
                begun.append(self._helpers.submit(self._finish, staging))
        try:
            for staging in mine:
                self._finish(staging)
        finally:
            wait(begun)
        for finished in begun:
            finished.result()

    def _finish(self, staging: _Staging) -> None:
        """Write what waits of one topic's part, and have it survive a power loss."""
        if staging.stager is not None and not staging.finished:
            staging.ready.extend(staging.stager.finish())
            staging.finished = True
        storage, folder = self._lake.storage, staging.topic.folder
        if staging.unseen:
            require_stored(storage, {f"{folder}/{segment.path}": segment.size for segment in staging.unseen})
            staging.unseen.clear()
        if staging.ready and not staging.lasting:
            make_durable(storage, [f"{folder}/{segment.path}" for segment in staging.ready])
            staging.lasting = True

    def write_again(self) -> None:
        """Write every segment again under a new name: a purge may have taken the old ones for orphans."""
        for staging in self._topics.values():
            staging.topic.state()
            staging.ready = staging.topic.restage(staging.ready)
            staging.lasting = False

    def drop(self) -> None:
        """Delete what was staged here and not committed. What other processes staged is theirs to delete."""
        for staging in self._topics.values():
            for stager in (*staging.earlier, *([] if staging.stager is None else [staging.stager])):
                stager.abort()
        self._topics = {}
