"""`transaction.timeout.ms`: a transaction that is open for longer is aborted by the reader that waits for its end."""

import threading
from collections.abc import Collection
from typing import Final

from tidelog.log.base.clock import Clock
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.transaction_log import TransactionLog

# Transactions whose time runs here; past that the ones first seen begin again when they are seen again.
_MOST_WATCHED: Final = 10_000


class TransactionTimeouts:
    """Aborts open transactions that a reader waits for, when they have been open for longer than their time-out.

    Only time that this observer itself saw counts, so that no two clocks are compared.
    """

    def __init__(self, transactions: TransactionLog, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[TransactionKey, float] = {}

    def abort_late(self, keys: Collection[TransactionKey]) -> bool:
        """Whether one of these open transactions has had its time, and is decided now."""
        now_s = self._clock.elapsed_s()
        with self._lock:
            since_s = {key: self._since_s.setdefault(key, now_s) for key in keys}
            while len(self._since_s) > _MOST_WATCHED:
                del self._since_s[next(iter(self._since_s))]
        late = [key for key in keys if now_s - since_s[key] >= self._timeout_s(key)]
        for key in late:
            self._transactions.abort(key)
            with self._lock:
                self._since_s.pop(key, None)
        return bool(late)

    def _timeout_s(self, key: TransactionKey) -> float:
        one = self._transactions.get(key.transactional_id)
        return 0.0 if one is None else one.timeout_ms / 1000
