"""The request that a line of the log, or an entry, is about: from a client's own number to what was made of it."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol, Self

Attributes = Mapping[str, str | int | float | bool]

# Names come from clients, and may be of any length and hold anything: what is written of them.
MOST_CHARACTERS: Final = 64


class RequestSpan(Protocol):
    """A span of a trace, for whatever works for the request. Times are seconds of the elapsed clock.

    `trace_id`: the trace's, in hex, as lines of the log name it.
    """

    start_s: float
    trace_id: str

    def part(
        self, name: str, start_s: float, end_s: float, attributes: Attributes, error: str = "",
        links: Sequence[Self] = (), others: Sequence[tuple[int, int, bool]] = (),
    ) -> Self:  # fmt: skip
        """A part of it that has ended, which may have parts of its own.

        `links`: what it has to do with besides; `others`: the same of spans of others, as `link` has them.
        """

    def beside(self, name: str, start_s: float, end_s: float, attributes: Attributes) -> Self:
        """What began before it and has ended, as a trace of its own that names it."""

    def note(self, attributes: Attributes) -> None:
        """Say more of it."""

    def link(self, spans: Sequence[tuple[int, int, bool]]) -> None:
        """Name spans of others that it has to do with: trace id, span id, and whether they are sampled."""

    def end(self, end_s: float, error: str = "") -> None:
        """It has ended, well where there is no `error`."""


class RequestId(NamedTuple):
    """One request of a client: its connection's other end, what it calls itself, and its number for the request.

    `span`: what traces of it hang below, where it is traced.

    Kafka's clients write client id and correlation id into their own logs. Text is made of it only for a line of the
    log: `10.0.0.7:51234/orders-service/17`.
    """

    host: str
    port: int
    client_id: str | None
    correlation_id: int | str
    span: RequestSpan | None = None

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
