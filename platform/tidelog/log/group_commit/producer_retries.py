"""Which failed commits are tried again, how often, after which pause: a producer's `retries`, `retry.backoff.ms`."""

from dataclasses import dataclass

from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.errors import TidelogError


@dataclass(frozen=True, slots=True)
class ProducerRetries:
    """A failed attempt is repeated after `backoff_s`, twice as long each time up to `most_backoff_s`, `most` times."""

    most: int = 2**31 - 1
    backoff_s: float = 0.1
    most_backoff_s: float = 1.0

    def repeats(self, error: TidelogError, attempts: int) -> bool:
        """Whether another attempt follows the one that ended with this error, the `attempts`-th."""
        return error.retriable and attempts <= self.most

    def pause_s(self, attempts: int, fraction: float) -> float:
        """Seconds until the next one; `fraction` (0 to 1, by chance) makes that a fifth shorter or longer."""
        return BackoffRule(self.backoff_s, self.most_backoff_s, least=0.8, spread=0.4).pause_s(attempts, fraction)
