"""The source of a streaming query. Its offsets are Kafka's JSON and nothing else."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tidelog.log.base.backoff import PollBackoff
from tidelog.log.base.clock import SystemIds
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.group_ports import GroupPositions
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.sources.catalog import Catalog
from tidelog.sources.limits import AtCut, depends_on_now
from tidelog.sources.offset_json import JsonOffsets, Offsets, TopicPartition, from_json_offsets, to_json_offsets
from tidelog.sources.options import SourceOptions
from tidelog.sources.planning import (
    Pace,
    admit,
    check_available_now,
    check_checkpoint,
    deleted,
    judge_losses,
    plan_stream,
)
from tidelog.sources.strategy import SubscribePattern
from tidelog.sources.tasks import plan_tasks, read_task

logger = logging.getLogger("tidelog.spark")

_NO_LIMIT = 2**63 - 1


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics batch by batch. One object lives as long as the query runs; tasks get a bare copy.

    `positions` publishes offsets as those of a lake's groups; without it the query's progress shows nowhere. `columns`:
    the type of the column of that name, as it was when the query started.
    """

    def __init__(
        self,
        options: SourceOptions,
        positions: Callable[[Lake], GroupPositions] | None = None,
        columns: pa.StructType | None = None,
    ) -> None:
        self._options = options
        self._columns = columns
        self._positions = positions
        self._published: dict[TopicPartition, int] | None = None
        self._publish_failure = ""
        self._catalog: Catalog | None = None
        self._backoff: PollBackoff | None = None
        self._group = options.reading_group(SystemIds().new())
        self._initial: dict[TopicPartition, int] | None = None
        self._refusal: InvalidOptionError | None = None
        self._repeated_first = False
        self._asked_latest = False
        self._reported_gone: Offsets | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._last_trigger_ms = 0  # as in Kafka's source: the first trigger never waits

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}

    def _look(self, *, required: bool = False) -> Catalog:
        if self._catalog is None:
            for warning in self._options.warnings:
                logger.warning(warning)
            self._catalog = Catalog(shared_lake(self._options.lake, self._options.store), self._options)
        self._catalog.refresh(required=required)
        return self._catalog

    def _polled_catalog(self) -> Catalog:
        """The catalog as of now, or of a moment ago when nothing came lately: Spark asks a hundred times a second."""
        catalog, backoff = self._catalog, self._backoff
        if catalog is None or backoff is None:
            catalog = self._look()
            self._backoff = PollBackoff(catalog.lake.clock)
        elif backoff.is_due:
            before = catalog.bounds()
            with backoff.poll():
                catalog.refresh()
            if catalog.bounds() != before:
                backoff.reset()
        return catalog

    # --- offsets -------------------------------------------------------------------------------------------

    @shallow
    def initialOffset(self) -> JsonOffsets:  # noqa: N802 - Spark's name
        """Where a new query starts, the same at every call of a run."""
        if self._initial is None:
            catalog = self._look(required=True)
            try:
                self._initial = catalog.resolved(self._options.starting, "start", streaming=True)
            except InvalidOptionError as refusal:
                # Spark asks for the start of a new query, and of a first batch that it repeats. That one has its
                # partitions, and a start that was right for them may not say where others begin that came since.
                self._initial, self._refusal = {}, refusal
            if self._target is not None:
                # Spark fixes the end first: a start that depends on the time may be past that one.
                self._target = catalog.stream_ends()
        return to_json_offsets(self._initial)

    @shallow
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> JsonOffsets:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        begun = from_json_offsets(start)
        first, self._asked_latest = not self._asked_latest, True
        if first:
            # Spark writes down what this returns before it plans the batch: the last moment to leave a checkpoint as
            # it is. What `begun` is later, this reader has answered.
            check_checkpoint(self._options.strategy, begun, fail_on_data_loss=self._options.fail_on_data_loss)
        # `begun` is where the last batch ended, which is done now. Spark commits it only once the next one begins, and
        # until then a query that has read everything would show a lag.
        self._publish_progress(begun)
        is_new = self._initial is not None and not self._repeated_first
        if is_new and self._refusal is not None:
            raise self._refusal
        if is_new and first and depends_on_now(self._options.starting):
            # Spark asks for the start again when it repeats a first batch that was not committed, and a start
            # that depends on the time would then be a later one. So the first batch is empty: its end, which
            # Spark keeps, is the start.
            self._latest = self._look().stream_ends(begun)
            return start
        catalog = self._polled_catalog()
        bounds = catalog.bounds()
        self._latest = catalog.stream_ends(begun)
        if self._target is not None and isinstance(self._options.ending, AtCut):  # what is begun may be past the cut
            self._target = {tp: max(end, begun.get(tp, end)) for tp, end in self._target.items()}
        latest = self._latest if self._target is None else self._target
        if not latest:
            self._report_gone(begun)
            return start  # without partitions Kafka's source has no offset: the query stays where it is
        admitted = admit(
            begun,
            latest,
            {tp: low for tp, (low, _) in bounds.items()},
            self._pace(limit),
            now_ms=catalog.lake.clock.now_ms(),
            last_trigger_ms=self._last_trigger_ms,
        )
        self._last_trigger_ms = admitted.last_trigger_ms
        return to_json_offsets(admitted.end)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """A limit when the options set one; its value is not looked at, the options are."""
        options = self._options
        if options.max_offsets_per_trigger is None and options.min_offsets_per_trigger is None:
            return ReadAllAvailable()
        return ReadMaxRows(options.max_offsets_per_trigger or _NO_LIMIT)

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802 - Spark's name
        """The log end offsets as last seen, for the query's progress."""
        return to_json_offsets(self._latest) if self._latest else None

    @shallow
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix where the query will end."""
        self._target = self._look(required=True).stream_ends()

    def _report_gone(self, begun: Offsets) -> None:
        """All partitions that the query reads are gone. Raises DataLossError where it names them and minds a loss.

        A pattern waits for topics; what it read and is gone is reported when it matches again.
        """
        if isinstance(self._options.strategy, SubscribePattern) or not begun or begun == self._reported_gone:
            return
        self._reported_gone = begun
        custom_group_id = self._options.group_id is not None
        for warning in judge_losses(
            [deleted(begun, custom_group_id=custom_group_id)], fail_on_data_loss=self._options.fail_on_data_loss
        ):
            logger.warning(warning)

    def _pace(self, limit: ReadLimit) -> Pace:
        if isinstance(limit, ReadAllAvailable):
            return Pace()
        options = self._options
        pace = Pace(options.min_offsets_per_trigger, options.max_offsets_per_trigger, options.max_trigger_delay_ms)
        return pace if self._target is None else pace.for_available_now()

    # --- records -------------------------------------------------------------------------------------------

    @shallow
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the tasks of a batch."""
        begun, ends = from_json_offsets(start), from_json_offsets(end)
        if not self._asked_latest:  # a batch of the checkpoint is repeated
            check_checkpoint(self._options.strategy, ends, fail_on_data_loss=self._options.fail_on_data_loss)
        catalog = self._look()
        if self._latest is None:
            self._latest = catalog.stream_ends(ends)
        if self._initial is not None and not self._asked_latest:  # the first batch is repeated
            self._repeated_first = True
            if depends_on_now(self._options.starting):
                return []  # its start was its end
            begun = catalog.resolved(self._options.starting, "start", streaming=True, of=ends.keys())
        if self._target is not None and self._asked_latest:
            check_available_now(self._target, ends, catalog.ends())
        plan = plan_stream(
            begun, ends, catalog.bounds(), self._group, custom_group_id=self._options.group_id is not None
        )
        for warning in judge_losses(plan.losses, fail_on_data_loss=self._options.fail_on_data_loss):
            logger.warning(warning)
        segments = catalog.segments(catalog.assigned())
        return plan_tasks(catalog.lake.uri, plan.ranges, segments, self._options, catalog.typings(), self._columns)

    @shallow
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task's records."""
        return read_task(partition)

    # --- progress ------------------------------------------------------------------------------------------

    def commit(self, end: dict[str, Any]) -> None:
        """Publish that this batch is done. The query's checkpoint is the truth."""
        self._publish_progress(from_json_offsets(end))

    def _publish_progress(self, done: dict[TopicPartition, int]) -> None:
        """Publish the query's progress as offsets of the group that it names (`kafka.group.id`), so that its lag shows.

        No query reads these offsets, and a failure to publish them stops none. Spark gives the source no other name
        that stays the same from run to run.
        """
        group = self._options.group_id
        if group is None or self._positions is None or done == self._published:
            return
        self._published = done
        try:
            self._publish(self._positions, group, done)
            self._publish_failure = ""
        except Exception as e:
            if str(e) != self._publish_failure:  # once, not for every batch
                self._publish_failure = str(e)
                logger.warning("The query's progress could not be written to group '%s'; it goes on: %s", group, e)

    def _publish(
        self, positions: Callable[[Lake], GroupPositions], group: str, done: dict[TopicPartition, int]
    ) -> None:
        """Publish the offsets of partitions that are still there."""
        catalog = self._catalog or self._look()
        there = catalog.bounds()
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, partition), offset in done.items():
            if (topic, partition) in there:
                by_topic.setdefault(topic, {})[partition] = offset
        positions(catalog.lake).publish(group, by_topic)


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query whose options are refused: answers every question with the error that it was made with.

    Spark's runner of Python sources stops the reader even when making it failed, and what a user reads last is then
    that failure of its own ("cannot access local variable 'reader'").
    """

    def __init__(self, why: InvalidOptionError) -> None:
        self._why = why

    @shallow
    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._why

    initialOffset = latestOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815
    partitions = read = _refuse
