"""What requests to an object store cost, at list prices that a file gives."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelog.commands.failures import UsageProblemError
from tidelog.log.storage.requests import RequestCounts, RequestKind

_GB = 1e9
# What a kind costs whose price the file does not name.
_AS = {
    RequestKind.RANGED_GET: RequestKind.GET,
    RequestKind.HEAD: RequestKind.GET,
    RequestKind.CONDITIONAL_PUT: RequestKind.PUT,
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


def _refuse_unknown(path: Path, prefix: str, found: Iterable[str], known: Iterable[str]) -> None:
    known = tuple(known)
    for name in found:
        if name not in known:
            raise _wrong(path, f"{prefix}{name} is unknown; known are {', '.join(known)}")


def _price(path: Path, name: str, price: object) -> float:
    if isinstance(price, bool) or not isinstance(price, int | float) or not price >= 0:
        raise _wrong(path, f"{name} is {price!r}, and a price is a number of USD, 0 or more")
    return float(price)


def _wrong(path: Path, what: str) -> UsageProblemError:
    return UsageProblemError(f"Prices in {path}: {what}. docs/object-stores.md shows the file's form.")
