"""A producer's statistics."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.clients.producer.committer import Shared, TopicCommitter
from tidelog.clients.stats import Statistics, Ticker
from tidelog.clients.traffic import TopicFigures, Traffic
from tidelog.transactions.lifecycle import TransactionPhase

# The partition of records that have none yet, as librdkafka numbers it.
_UNASSIGNED: Final = -1

_TXN_STATES: Final[Mapping[TransactionPhase, str]] = {
    TransactionPhase.NEW: "Init",
    TransactionPhase.READY: "Ready",
    TransactionPhase.OPEN: "InTransaction",
    TransactionPhase.COMMITTING: "CommittingTransaction",
    TransactionPhase.FENCED: "FatalError",
}


class ProducerStatistics(Statistics):
    """The statistics that a producer's `stats_cb` gets. `topics`: its committers."""

    kind = "producer"

    def __init__(self, shared: Shared, traffic: Traffic, topics: Mapping[str, TopicCommitter]) -> None:
        super().__init__(shared.lake, shared.settings, traffic)
        self._shared = shared
        self._topics = topics

    @classmethod
    def begin(cls, shared: Shared, topics: Mapping[str, TopicCommitter]) -> Ticker | None:
        """Have polls report them until the ticker is halted; None where no statistics are asked for."""
        if shared.traffic is None:
            return None
        statistics = cls(shared, shared.traffic, topics)
        return Ticker(shared.settings, lambda: shared.reports.report_statistics(statistics))

    def document(self) -> dict[str, Any]:
        """Return the statistics."""
        in_flight, settings = self._shared.in_flight, self._shared.settings
        topics = {name: committer.figures() for name, committer in list(self._topics.items())}
        places = list(self.traffic.partitions)
        document = self._head(
            replyq=self._shared.reports.waiting(),
            msg_cnt=in_flight.count,
            msg_size=in_flight.added_size - in_flight.completed_size,
            msg_max=settings.queue_max_messages,
            msg_size_max=settings.queue_max_kbytes * 1024,
            metadata_cache_cnt=len(topics),
        )
        document["brokers"] = self._broker(
            places,
            outbuf_cnt=sum(1 for one in topics.values() if one.waiting),
            outbuf_msg_cnt=sum(one.waiting for one in topics.values()),
            txretries=sum(one.retries for one in topics.values()),
        )
        document["topics"] = {
            topic: self._topic(topic, self._partitions(figures, [p for name, p in places if name == topic]))
            for topic, figures in topics.items()
        }
        if settings.enable_idempotence:
            document["eos"] = self._eos(topics)
        return document | self._totals()

    def _partitions(self, figures: TopicFigures, partitions: list[int]) -> dict[int, dict[str, Any]]:
        documents: dict[int, dict[str, Any]] = {
            _UNASSIGNED: {"msgq_cnt": figures.waiting, "msgq_bytes": figures.waiting_bytes}
        }
        sequences = {} if figures.producer is None else figures.producer[2]
        for partition in partitions:
            fields: dict[str, Any] = {"next_ack_seq": sequences.get(partition, 0)}
            if figures.state is not None and partition < figures.state.partitions:
                end = figures.state.end(partition)
                fields |= {"lo_offset": figures.state.start(partition), "hi_offset": end, "ls_offset": end}
            documents[partition] = fields
        return documents

    def _eos(self, topics: Mapping[str, TopicFigures]) -> dict[str, Any]:
        """A producer has an id in each topic: that of the first one is shown, and how many there are."""
        transactions = self._shared.transactions
        phase = None if transactions is None else transactions.phase
        age_ms = self._us_since(self.traffic.began_s) // 1000
        producers = [one.producer for one in topics.values() if one.producer is not None]
        producer_id, epoch = producers[0][:2] if producers else (-1, -1)
        return {
            "idemp_state": "Assigned" if producers else "Init",
            "idemp_stateage": age_ms,
            "txn_state": "Init" if phase is None else _TXN_STATES[phase],
            "txn_stateage": age_ms,
            "txn_may_enq": phase is TransactionPhase.OPEN,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "epoch_cnt": len(producers),
        }
