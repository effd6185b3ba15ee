"""What traces say of a transaction: how it was ended, and how long it was open before."""

from tidelog.broker.base.context import Context
from tidelog.log.base.request_ids import REQUEST
from tidelog.transactions.part_rules import Ended, ProducerIdentity
from tidelog.transactions.transaction_log import TransactionLog


class EndSpans:
    """The parts of the request that ends a transaction, where it is traced. For the worker thread that ends it.

    The transaction as a whole is a trace of its own, which names that of the request: it began before it.
    """

    def __init__(self, context: Context, log: TransactionLog, producer: ProducerIdentity) -> None:
        request = REQUEST.get()
        self._span = None if request is None else request.span
        self._clock = context.clock
        self._name = producer.transactional_id
        self._open = None if self._span is None else log.open(producer.transactional_id)
        self._since_s = context.clock.elapsed_s()

    def decided(self, ended: Ended) -> None:
        """It is decided."""
        if self._span is None:
            return
        now_s = self._clock.elapsed_s()
        self._about = {
            "messaging.kafka.transactional_id": self._name,
            "tidelog.transaction_outcome": "committed" if ended.intent is not None else "aborted",
            "tidelog.transaction_partitions": 0 if self._open is None else len(self._open.partitions),
        }
        self._span.part("decide", self._since_s, now_s, self._about)
        self._since_s = now_s

    def applied(self) -> None:
        """What was decided is in its topics and groups, or was left to others."""
        if self._span is None:
            return
        now_s = self._clock.elapsed_s()
        self._span.part("apply", self._since_s, now_s, self._about)
        if self._open is not None:
            open_s = max(0.0, (self._clock.now_ms() - self._open.began_ms) / 1000)
            self._span.beside("transaction", now_s - open_s, now_s, self._about)
