"""What `tidelog perf --storage-calls` reports: requests to the store by kind, and what they cost."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelog.commands.failures import UsageProblemError
from tidelog.commands.terminal import console, number, size, table
from tidelog.commands.views import counted
from tidelog.log.storage.requests import RequestCounts, RequestKind, Requests

_GB = 1e9
# What a kind costs whose price the file does not name.
_AS = {
    RequestKind.RANGED_GET: RequestKind.GET,
    RequestKind.HEAD: RequestKind.GET,
    RequestKind.CONDITIONAL_PUT: RequestKind.PUT,
    RequestKind.COPY: RequestKind.PUT,
    RequestKind.MULTIPART_CREATE: RequestKind.PUT,
    RequestKind.MULTIPART_PART: RequestKind.PUT,
    RequestKind.MULTIPART_COMPLETE: RequestKind.PUT,
    RequestKind.MULTIPART_ABORT: RequestKind.DELETE,
}
_NEEDED = (RequestKind.GET, RequestKind.PUT, RequestKind.LIST, RequestKind.DELETE)
_PER_GB = ("sent", "received")


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per 1,000 requests of each kind, and per GB (10^9 bytes) sent to the store and received from it."""

    name: str
    requests: Mapping[RequestKind, float]
    sent_gb: float = 0.0
    received_gb: float = 0.0

    def of(self, kind: RequestKind) -> float:
        """USD per 1,000 requests of this kind."""
        return self.requests[kind if kind in self.requests else _AS[kind]]

    def cost(self, counts: RequestCounts) -> float:
        """USD for all of this."""
        requests = sum(self.of(kind) * n / 1000 for kind, n in counts.by_kind.items())
        return requests + (self.sent_gb * counts.sent_bytes + self.received_gb * counts.received_bytes) / _GB


# The list prices of S3 Standard in us-east-1, from machines in the same region, which pay for no transfer.
S3_STANDARD = Prices(
    "S3 Standard, us-east-1",
    {RequestKind.GET: 0.0004, RequestKind.PUT: 0.005, RequestKind.LIST: 0.005, RequestKind.DELETE: 0.0},
)


def read_prices(path: Path) -> Prices:
    """The prices that a TOML file, or a JSON file (`.json`), gives. Raises `UsageProblemError` naming what is wrong.

    The file's form is in docs/object-stores.md.
    """
    text = path.read_text(encoding="utf-8")
    try:
        body = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as e:
        form = "JSON" if path.suffix == ".json" else "TOML"
        raise UsageProblemError(
            f"{path} is no {form}: {e}. Write prices as docs/object-stores.md shows them."
        ) from None
    if not isinstance(body, dict):
        raise _wrong(path, "it is no table of tables")
    _refuse_unknown(path, "", body, ("name", "requests", "per_gb"))
    requests = _table(path, body, "requests")
    _refuse_unknown(path, "requests.", requests, tuple(RequestKind))
    missing = [kind.value for kind in _NEEDED if kind.value not in requests]
    if missing:
        raise _wrong(path, f"requests.{missing[0]} is missing; {', '.join(_NEEDED)} are needed")
    per_gb = _table(path, body, "per_gb")
    _refuse_unknown(path, "per_gb.", per_gb, _PER_GB)
    return Prices(
        str(body.get("name", path.name)),
        {RequestKind(kind): _price(path, f"requests.{kind}", price) for kind, price in requests.items()},
        **{f"{way}_gb": _price(path, f"per_gb.{way}", price) for way, price in per_gb.items()},
    )


def _table(path: Path, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = body.get(name, {})
    if not isinstance(table, dict):
        raise _wrong(path, f"{name} is no table")
    return table


def _refuse_unknown(path: Path, prefix: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    allowed = tuple(allowed)
    for name in names:
        if name not in allowed:
            raise _wrong(path, f"{prefix}{name} is unknown; known are {', '.join(allowed)}")


def _price(path: Path, name: str, price: object) -> float:
    if isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
        raise _wrong(path, f"{name} is {price!r}, and a price is a number of USD, 0 or more")
    return float(price)


def _wrong(path: Path, what: str) -> UsageProblemError:
    return UsageProblemError(f"Prices in {path}: {what}. docs/object-stores.md shows the file's form.")


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
