"""What `tidelog perf --storage-calls` reports: requests to the store by kind, and what they cost."""

from dataclasses import dataclass
from typing import Any

from tidelog.cli.perf.prices import Prices
from tidelog.commands.terminal import console, number, size, table
from tidelog.commands.views import counted
from tidelog.log.storage.requests import RequestCounts, RequestKind, Requests


@dataclass(frozen=True, slots=True)
class StorageCalls:
    """The requests of a run over `records` records. `opening`: those before the first record, counted apart.

    `real`: whether they were sent to an object store; else they are those that one would have been sent.
    """

    records: int
    opening: RequestCounts
    running: RequestCounts
    prices: Prices
    real: bool

    def print_lines(self) -> None:
        """Print the report for people."""
        out = console()
        of_what = "Storage calls" if self.real else "Storage calls that an object store would be sent"
        out.print(f"{of_what}, at prices of {self.prices.name}:")
        rows = [self._row(kind.value, n, self.prices.of(kind)) for kind, n in sorted_kinds(self.running)]
        total = self.running.total
        rows.append(("all", number(total), self._per_thousand(total), "", _usd(self.prices.cost(self.running))))
        out.print(table(("call", ">calls", ">per 1,000 records", ">USD per 1,000 calls", ">USD"), rows))
        out.print(f"Sent {size(self.running.sent_bytes)}, received {size(self.running.received_bytes)}.")
        if self.records:
            million = self.prices.cost(self.running) * 1e6 / self.records
            out.print(f"1,000,000 records like these cost {_usd(million)} USD.")
        opening = ", ".join(f"{kind.value} {number(n)}" for kind, n in sorted_kinds(self.opening))
        out.print(
            f"Opening the lake and the topic took {counted(self.opening.total, 'call')} before: {opening or 'none'}."
        )

    def _row(self, name: str, calls: int, price: float) -> tuple[str, ...]:
        return name, number(calls), self._per_thousand(calls), f"{price:g}", _usd(price * calls / 1000)

    def _per_thousand(self, calls: int) -> str:
        return f"{1000 * calls / self.records:,.3f}" if self.records else "-"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        per = 1000 / self.records if self.records else None
        return {
            "real": self.real,
            "prices": self.prices.name,
            "calls": {kind.value: n for kind, n in sorted_kinds(self.running)},
            "per_1000_records": {
                kind.value: None if per is None else n * per for kind, n in sorted_kinds(self.running)
            },
            "sent_bytes": self.running.sent_bytes,
            "received_bytes": self.running.received_bytes,
            "usd": self.prices.cost(self.running),
            "usd_per_1000_records": None if per is None else self.prices.cost(self.running) * per,
            "opening": {kind.value: n for kind, n in sorted_kinds(self.opening)},
        }


class Meter:
    """Counts a run's requests, which come from now on: what was counted before is the opening."""

    def __init__(self, requests: Requests, prices: Prices, *, real: bool) -> None:
        self._requests = requests
        self._prices = prices
        self._real = real
        self._opening = requests.counts()

    def calls(self, records: int) -> StorageCalls:
        """What there was."""
        running = self._requests.counts().since(self._opening)
        return StorageCalls(records, self._opening, running, self._prices, self._real)


def sorted_kinds(counts: RequestCounts) -> list[tuple[RequestKind, int]]:
    """Each kind that there was, in the order of `RequestKind`."""
    return [(kind, counts.by_kind[kind]) for kind in RequestKind if counts.by_kind.get(kind)]


def _usd(amount: float) -> str:
    return f"{amount:,.6f}"
