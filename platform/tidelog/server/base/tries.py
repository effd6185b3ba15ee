"""How often one address may try wrong credentials; RFC 5802, 9, leaves it to servers to keep clients from guessing."""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Final

from tidelog.log.base.clock import Clock

# The most addresses that are kept in mind: the oldest is forgotten first.
MOST_ADDRESSES: Final = 10_000
# A home or a machine has that much of IPv6, with any address in it.
_IPV6_BITS: Final = 64


@dataclass(slots=True)
class _Failures:
    """What is left of the failures of before at a time, s of the elapsed clock."""

    left: float
    at_s: float


class FailedTries:
    """Failures by address, forgotten evenly: `per_minute` of them within a minute. For one thread at a time."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._most = per_minute
        self._clock = clock
        self._by_network: dict[str, _Failures] = {}

    def __len__(self) -> int:
        return len(self._by_network)

    def is_over(self, host: str) -> bool:
        """Whether the address has no try left for now."""
        found = self._by_network.get(network_of(host))
        return found is not None and self._left(found) > self._most - 1

    def failed(self, host: str) -> None:
        """It has tried, and failed."""
        network = network_of(host)
        found = self._by_network.pop(network, None)
        left = 0.0 if found is None else self._left(found)
        if len(self._by_network) >= MOST_ADDRESSES:
            del self._by_network[next(iter(self._by_network))]
        self._by_network[network] = _Failures(left + 1, self._clock.elapsed_s())

    def _left(self, found: _Failures) -> float:
        passed_s = self._clock.elapsed_s() - found.at_s
        return max(0.0, found.left - passed_s * self._most / 60)


@lru_cache(maxsize=1024)
def network_of(host: str) -> str:
    """What counts as one address: of IPv6, all that begin with the same 64 bits."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _IPV6_BITS), strict=False))
