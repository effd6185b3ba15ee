"""The end of a handshake: a client whose certificate gives no principal is dropped, and its place is free again."""

import ssl
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from tidelog.access.principal_rules import NoPrincipalError
from tidelog.broker.base.calls import Peer
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.server.tls_handshake import TlsHandshake


@pytest.mark.parametrize("error", [NoPrincipalError("No rule is for it."), ValueError("error parsing asn1 value")])
def test_a_certificate_without_a_principal_ends_its_connection(error: ValueError) -> None:
    def fails(_: ssl.SSLObject) -> str:
        raise error

    principal_of: Callable[[ssl.SSLObject], str] = fails
    server: Any = Mock(meter=BrokerMeter())
    handshake = TlsHandshake(server, Peer("CLIENTS", "10.0.0.7"), principal_of)
    assert not handshake.is_over(Mock(), Mock())
    server.closed.assert_called_once_with(handshake)
    assert str(error) in server.lines.say.call_args.args[2]
    server.secured.assert_not_called()
