"""The request that a line of the log, or an entry, is about: from a client's own number to what was made of it."""

from contextvars import ContextVar
from typing import Final, NamedTuple

# Names come from clients, and may be of any length and hold anything: what is written of them.
MOST_CHARACTERS: Final = 64


class RequestId(NamedTuple):
    """One request of a client: its connection's other end, what it calls itself, and its number for the request.

    Kafka's clients write client id and correlation id into their own logs. Text is made of it only for a line of the
    log: `10.0.0.7:51234/orders-service/17`.
    """

    host: str
    port: int
    client_id: str | None
    correlation_id: int | str

    def __str__(self) -> str:
        """As lines of the log name it, in one word.

        >>> str(RequestId("10.0.0.7", 51234, "my service\\n", 17))
        '10.0.0.7:51234/my_service_/17'
        """
        client = one_word(self.client_id or "-")
        return f"{self.host or '-'}:{self.port}/{client}/{one_word(str(self.correlation_id))}"


# The request that the running task or thread works for; None where it works for none, or for many.
REQUEST: Final[ContextVar[RequestId | None]] = ContextVar("tidelog_request", default=None)


def one_word(text: str) -> str:
    """The text without what would end a word, or a line, of the log; cut where it is long."""
    return "".join(c if c.isprintable() and c not in ' "/' else "_" for c in text[:MOST_CHARACTERS])
