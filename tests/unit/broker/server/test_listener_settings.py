"""What a listener's settings say of it, and of the broker that has it."""

import pytest

from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.settings import BrokerSettings
from tidelog.server.base.listener_settings import ClientAuth, ListenerSettings, SecurityProtocol, TlsSettings

PLAINTEXT = ListenerSettings("127.0.0.1", 0)
_TLS = TlsSettings("broker.pem")
_MTLS = TlsSettings("broker.pem", client_auth=ClientAuth.REQUESTED)


@pytest.mark.parametrize(
    ("listener", "authenticates"),
    [
        (PLAINTEXT, False),
        (ListenerSettings("", 0, SecurityProtocol.SSL, _TLS), False),
        (ListenerSettings("", 0, SecurityProtocol.SSL, _MTLS), True),
        (ListenerSettings("", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=("PLAIN",)), True),
        (ListenerSettings("", 0, SecurityProtocol.SASL_SSL, _TLS, ("PLAIN",)), True),
    ],
)
def test_what_no_acl_is_about_is_everyones_unless_a_listener_authenticates(listener, authenticates):
    assert listener.authenticates == authenticates
    assert BrokerSettings({"A": PLAINTEXT, "B": listener}).everyone == (not authenticates)


@pytest.mark.parametrize("everyone", [True, False])
def test_the_setting_decides_over_the_listeners(everyone):
    told = AccessSettings(everyone=everyone)
    assert BrokerSettings({"A": PLAINTEXT}, access=told).everyone == everyone


def test_the_keys_password_is_not_shown():
    assert "secret" not in repr(TlsSettings("broker.pem", key_password="secret"))
