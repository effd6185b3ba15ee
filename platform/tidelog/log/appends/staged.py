"""An append between its staging and its commit: the log may change meanwhile, and then the records are staged again."""

import pyarrow as pa

from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.errors import OutcomeUnknownError, RequestForgottenError, TidelogError, UnknownPartitionError
from tidelog.log.records.partitioners import Partitioner
from tidelog.log.rules.appends import CommitOutcome, Marker, Ranges, StagedShare
from tidelog.log.rules.topics import require_topic
from tidelog.log.segments.staging import Stager, stage_records


class StagedAppend:
    """Records of one topic on their way into its log. They land once, however often `attempt` is called.

    `table` as `tidelog.log.records.checks.to_records` takes it; `turn` chooses the partition of records without a key.
    `only_at`: they are appended only where the topic's one partition ends there. For one thread at a time.
    """

    def __init__(
        self,
        joint: JointAppend,
        table: pa.Table,
        *,
        acks: int = -1,
        partitioner: str | Partitioner = "murmur2",
        compression: str | None = None,
        turn: int = 0,
        marker: Marker | None = None,
        only_at: int | None = None,
    ) -> None:
        self._joint = joint
        self._table = table
        self._acks = acks
        self._partitioner = partitioner
        self._compression = compression
        self._turn = turn
        self._marker = marker
        self._only_at = only_at
        # What is staged, and in doubt once it was to be committed.
        self._share: StagedShare | None = None

    def attempt(self) -> Ranges:
        """Commit the records, staged again as often as the log has changed: {partition: (first offset, end offset)}.

        Raises what the records are refused for, and what the log and the store raise. After `OutcomeUnknownError`, and
        after an exception that is no `TidelogError` (Ctrl-C), an entry may name the staged segments: they are kept, and
        the next attempt is made with them. After `RequestForgottenError` one may, too, and no attempt will ever know.
        After other errors no entry does: what this call has staged is deleted, what an earlier one left is purged.
        """
        at_least_ms = 0
        while True:
            stager: Stager | None = None
            if self._share is None:
                stager, self._share = self._stage(at_least_ms)
            share, self._share = self._share, self._share.repeated()
            answer = self._joint.commit(share)
            if not answer.settles(share):
                raise self._unknown(answer.error)
            self._share = None
            if stager is not None and answer.outcome is not CommitOutcome.COMMITTED:
                stager.abort()
            if answer.outcome is not CommitOutcome.STALE:
                return answer.required()
            at_least_ms = answer.at_least_ms

    def _unknown(self, error: TidelogError | None) -> TidelogError:
        if isinstance(error, OutcomeUnknownError | RequestForgottenError):
            return error
        unknown = OutcomeUnknownError(
            f"Whether records were appended to '{self._joint.topic.name}' is not known: the store gave no answer, and"
            f" to ask it again failed ({error}). They may be there. Read the topic to see.",
            request_id="",
        )
        unknown.__cause__ = error
        return unknown

    def _stage(self, at_least_ms: int) -> tuple[Stager, StagedShare]:
        """Check the records by the topic's configuration, and stage them; `at_least_ms`: as of `AppendAnswer`."""
        topic = self._joint.topic
        while True:
            require_topic(topic.known, topic.name, topic.id)
            topic.grow_for(self._table)
            metadata, stager = topic.known.metadata, topic.stager(self._compression)
            try:
                now_ms = max(topic.now_ms(), at_least_ms)
                stage_records(stager, self._table, topic.name, topic.config(), self._partitioner, self._turn, now_ms)
                segments = tuple(stager.finish())
            except UnknownPartitionError:
                stager.abort()
                if topic.state().partitions == stager.partitions:
                    raise
                # the topic has grown since it was last looked at
            except BaseException:
                stager.abort()
                raise
            else:
                digest = self._joint.digest(metadata)
                return stager, StagedShare(
                    segments, digest, acks=self._acks, marker=self._marker, only_at=self._only_at
                )
