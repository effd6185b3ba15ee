"""Credentials of SCRAM: RFC vectors, what is kept, what a wrong user costs."""

import base64
import hashlib
import hmac
from collections import Counter

import pytest
import scramp

from tidelog.access.credentials import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential,
    decoy,
    exchange,
    is_password,
    of_salted_password,
)
from tidelog.log.base.errors import InvalidConfigError

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SECRET = b"s" * 32
SALT = b"salt" * 4


def test_the_keys_of_rfc_7677() -> None:
    """Its example: user "user", password "pencil", this salt, 4,096 iterations; the server's signature is its last."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = credential(SHA_256, "pencil", salt, 4096)
    message = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,"
        "i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(found.server_key, message.encode(), "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_password_is_known_by_its_keys(mechanism: ScramMechanism) -> None:
    made = credential(mechanism, "pencil", SALT)
    assert is_password(made, "pencil")
    assert not is_password(made, "pencils")
    assert not is_password(made, "")
    assert "pencil" not in repr(made)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_salted_password_makes_the_same_credential(mechanism: ScramMechanism) -> None:
    made = credential(mechanism, "pencil", SALT)
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, b"pencil", made.salt, made.iterations)
    assert of_salted_password(mechanism, made.salt, salted, made.iterations) == made


@pytest.mark.parametrize("iterations", [0, LEAST_ITERATIONS - 1, MOST_ITERATIONS + 1])
def test_iterations_have_bounds(iterations: int) -> None:
    with pytest.raises(InvalidConfigError, match="4096 to 16384"):
        credential(SHA_256, "pencil", SALT, iterations)


@pytest.mark.parametrize("password", ["", "a\0b", "a\u0627"])
def test_what_is_no_password(password: str) -> None:
    with pytest.raises(InvalidConfigError, match="password") as refusal:
        credential(SHA_256, password, SALT)
    assert not password or password not in str(refusal.value)


def logs_in(known: ScramCredential, user: str, password: str) -> bool:
    server = exchange(known.mechanism, lambda _: known)
    client = scramp.ScramClient([known.mechanism.value], user, password)
    server.set_client_first(client.get_client_first())
    client.set_server_first(server.get_server_first())
    try:
        server.set_client_final(client.get_client_final())
        client.set_server_final(server.get_server_final())
    except scramp.ScramException:
        return False
    return True


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_an_exchange(mechanism: ScramMechanism) -> None:
    made = credential(mechanism, "pencil", SALT)
    assert logs_in(made, "alice", "pencil")
    assert not logs_in(made, "alice", "pen")
    assert not logs_in(decoy(mechanism, "alice", SECRET), "alice", "pencil")


def test_a_decoy_is_always_the_same_for_a_name_and_no_other() -> None:
    one = decoy(SHA_256, "alice", SECRET)
    assert one == decoy(SHA_256, "alice", SECRET)
    others = [decoy(SHA_256, "bob", SECRET), decoy(SHA_512, "alice", SECRET), decoy(SHA_256, "alice", b"t" * 32)]
    assert len({one.salt, *(other.salt for other in others)}) == 4
    real = credential(SHA_256, "pencil", SALT)
    assert (len(one.salt), len(one.stored_key), len(one.server_key)) == (
        len(real.salt),
        len(real.stored_key),
        len(real.server_key),
    )


def test_an_unknown_user_costs_the_hashes_of_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    known, spent = credential(SHA_512, "pencil", SALT), Counter[str]()
    plain = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        spent[name] += iterations
        return plain(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    assert not is_password(known, "wrong")
    of_known = spent.copy()
    assert not is_password(decoy(SHA_512, "mallory", SECRET), "wrong")
    assert spent["sha512"] == 2 * of_known["sha512"] > 0
