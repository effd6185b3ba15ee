"""What the clients of a broker run, as they say it when they connect (KIP-511)."""

from tidelog.broker.base.calls import Peer

# The name and version of software whose client has not given them. Source: `ClientInformation.UNKNOWN_NAME_OR_VERSION`.
UNKNOWN = ("unknown", "unknown")
# What is kept of each, in characters: a client says it before it has logged in.
LONGEST = 255


class ClientSoftware:
    """The software of each connection, until it ends. For the loop's thread."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int], tuple[str, str]] = {}

    def heard(self, peer: Peer, name: str, version: str) -> None:
        """A client has said what it runs."""
        self._told[peer.host, peer.port] = (name[:LONGEST], version[:LONGEST])

    def forget(self, peer: Peer) -> None:
        """A connection has ended."""
        self._told.pop((peer.host, peer.port), None)

    def of(self, peer: Peer) -> tuple[str, str]:
        """Its name and version."""
        return self._told.get((peer.host, peer.port), UNKNOWN)
