"""An address that opens connections too quickly: real sockets, with and without TLS."""

import socket
import ssl
import struct
import sys
from contextlib import suppress

import pytest
from support.brokers import running_broker
from support.certificates import Authority

from tidelog.access import quotas
from tidelog.access.access_log import AccessLog
from tidelog.access.quotas import DEFAULT, Entity, Quota
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol, TlsSettings

QUESTION = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 7, -1)
# So low that a second connection is too many, however slow the machine is. A client can set whole numbers only.
ONE_IN_A_DAY = 1 / 86_400
# An address that no other test's client has: one that outlives its broker may find another at its port.
OWN = ("127.0.0.7", 0) if sys.platform == "linux" else None


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setattr(quotas, "WHOLE", frozenset())
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("t")
        log = AccessLog(opened)
        log.alter_quotas({Entity(ip=DEFAULT): {Quota.CONNECTION_CREATION_RATE: ONE_IN_A_DAY}})
        log.close()
        yield opened


def listener(protocol, authority):
    tls = None
    if protocol is SecurityProtocol.SSL:
        tls = TlsSettings(str(authority.issue("broker.pem")))
    return {"CLIENTS": ListenerSettings("127.0.0.1", 0, protocol, tls)}


@pytest.mark.parametrize("protocol", [SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL])
def test_connections_above_the_rate_are_closed_unheard(protocol, lake, tmp_path):
    authority = Authority(tmp_path)
    with running_broker(lake, listeners=listener(protocol, authority)) as address:
        host, _, port = address.rpartition(":")
        answers = []
        for _ in range(3):
            with suppress(OSError), socket.create_connection((host, int(port)), 60, OWN) as plain:
                connection = plain
                if protocol is SecurityProtocol.SSL:
                    context = ssl.create_default_context(cafile=authority.path)
                    connection = context.wrap_socket(plain, server_hostname="localhost")
                with connection:
                    connection.sendall(QUESTION)
                    answers.append(connection.makefile("rb").read(8))
    assert [len(answer) for answer in answers if answer] == [8]
