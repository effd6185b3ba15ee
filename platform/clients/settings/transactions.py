"""The keys of a producer's transactions."""

from dataclasses import dataclass

from tidelog.clients.settings.parsing import key
from tidelog.clients.settings.value_types import Text, Whole

_MAX_INT = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TransactionKeys:
    """What a producer takes for its transactions."""

    transactional_id: str | None = key(
        "transactional.id",
        None,
        Text(1, 32_767),
        "The producer's name in transactions, the same after a crash and a restart: a new producer with it fences the "
        "older one, and finishes or aborts what that left. Needs idempotence.",
    )
    transaction_timeout_ms: int = key(
        "transaction.timeout.ms",
        60_000,
        Whole(1_000, _MAX_INT),
        "How long a transaction may be open before others may abort it; the lake's `transaction.max.timeout.ms` is the "
        "most.",
    )
