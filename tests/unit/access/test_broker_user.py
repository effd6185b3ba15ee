"""The user that brokers are to each other."""

import pytest

from tidelog.access.broker_user import BROKER_USER, broker_credential, broker_password, known_credential
from tidelog.access.credentials import ScramMechanism, credential, is_password
from tidelog.access.state import AccessState

SECRET = bytes(range(32))


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_password_is_right_on_every_broker_that_knows_the_secret(mechanism):
    known = known_credential(AccessState(secret=SECRET), BROKER_USER, mechanism)
    assert known is not None
    assert is_password(known, broker_password(SECRET))
    assert not is_password(known, broker_password(SECRET[::-1]))


def test_nothing_is_derived_where_there_is_no_secret():
    assert known_credential(AccessState(), BROKER_USER, ScramMechanism.SHA_512) is None
    with pytest.raises(ValueError, match="no secret"):
        broker_password(b"")


def test_no_row_replaces_the_credential():
    mechanism = ScramMechanism.SHA_256
    planted = credential(mechanism, "planted", b"salt of 16 bytes")
    state = AccessState(scram={(BROKER_USER, mechanism): planted, ("ann", mechanism): planted}, secret=SECRET)
    assert known_credential(state, BROKER_USER, mechanism) == broker_credential(SECRET, mechanism) != planted
    assert known_credential(state, "ann", mechanism) is planted
    assert known_credential(state, "bob", mechanism) is None
