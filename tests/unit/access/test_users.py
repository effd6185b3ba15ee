"""Users who log in by a password, and those that there are not: neither answers nor costs tell them apart."""

import hashlib
from collections import Counter
from collections.abc import Callable

import pytest

from tidelog.access.authenticator import Authenticator
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.model import Identity
from tidelog.access.state import AccessState
from tidelog.access.users import Users
from tidelog.log.base.errors import AuthenticationError

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SALT, SECRET = b"salt" * 4, b"s" * 32
PASSWORD = "correct horse"


def state(**users: tuple[ScramMechanism, int]) -> AccessState:
    made = {(user, one[0]): credential(one[0], PASSWORD, SALT, one[1]) for user, one in users.items()}
    return AccessState(scram=made, secret=SECRET)


def users_of(known: AccessState) -> Users:
    return Users(lambda: known, b"spare")


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], dict[str, int]]:
    """The iterations that a call costs, by hash."""
    counts: Counter[str] = Counter()
    plain = hashlib.pbkdf2_hmac

    def counting(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        counts[name] += iterations
        return plain(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counting)

    def count(call: Callable[[], object]) -> dict[str, int]:
        counts.clear()
        call()
        return dict(counts)

    return count


def test_a_user_and_its_password_give_the_principal() -> None:
    authenticator = Authenticator(users_of(state(alice=(SHA_512, 4096), bob=(SHA_256, 4096))), None)
    assert authenticator.basic("alice", PASSWORD) == Identity("User:alice")
    assert authenticator.basic("bob", PASSWORD) == Identity("User:bob")
    for user, password in (
        ("alice", "wrong"),
        ("carol", PASSWORD),
        ("", PASSWORD),
        ("alice", ""),
        ("alice", "x" * 1025),
    ):
        with pytest.raises(AuthenticationError):
            authenticator.basic(user, password)


def test_no_token_is_accepted_without_an_issuer() -> None:
    with pytest.raises(AuthenticationError):
        Authenticator(users_of(state()), None).bearer("a.b.c")


@pytest.mark.parametrize(
    "known",
    [state(alice=(SHA_512, 4096)), state(alice=(SHA_256, 4096)), state(alice=(SHA_512, 16_384))],
    ids=["SHA-512", "SHA-256", "16384 iterations"],
)
@pytest.mark.parametrize("unknown", ["mallory", "eve", "__broker"])
def test_an_unknown_user_costs_the_hashes_of_a_wrong_password(
    known: AccessState, unknown: str, spent: Callable[[Callable[[], object]], dict[str, int]]
) -> None:
    authenticator = Authenticator(users_of(known), None)

    def refused(user: str, only: str | None = None) -> dict[str, int]:
        def try_() -> None:
            with pytest.raises(AuthenticationError):
                authenticator.basic(user, "wrong", only=only)

        return spent(try_)

    of_known = refused("alice")
    assert sum(of_known.values()) >= 4096
    if unknown != "__broker":  # it is the brokers' own, with the usual iterations, and no secret
        assert refused(unknown) == of_known
    assert refused("alice", only="User:bob") == of_known


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_what_an_exchange_shows_of_an_unknown_user_is_what_users_have(mechanism: ScramMechanism) -> None:
    """Its iterations, which a server tells before a client proves anything, are those of some user."""
    users = users_of(state(alice=(mechanism, 8192), bob=(mechanism, 16_384)))
    shown = {users.scram(mechanism, f"user {number}").iterations for number in range(50)}
    assert shown == {8192, 16_384}
    again = [users.scram(mechanism, "mallory") for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert len(again[0].salt) == len(SALT)


def test_a_new_user_does_not_change_what_is_shown_of_unknown_ones() -> None:
    now = state(alice=(SHA_512, 8192))
    users = Users(lambda: now, b"spare")
    before = users.scram(SHA_512, "mallory")
    now = state(alice=(SHA_512, 8192), bob=(SHA_512, 8192))
    assert users.scram(SHA_512, "mallory") == before
    assert users.scram(SHA_512, "bob") is now.scram["bob", SHA_512]


def test_before_the_first_user_decoys_are_of_this_process() -> None:
    one, other = Users(AccessState, b"one"), Users(AccessState, b"other")
    assert one.scram(SHA_512, "mallory") == one.scram(SHA_512, "mallory")
    assert one.scram(SHA_512, "mallory") != other.scram(SHA_512, "mallory")


def test_who_is_not_welcome_gets_a_decoy() -> None:
    users = users_of(state(alice=(SHA_512, 4096)))
    assert users.scram(SHA_512, "alice", welcome=False) == users.scram(SHA_512, "alice", welcome=False)
    assert users.scram(SHA_512, "alice", welcome=False) != users.scram(SHA_512, "alice")


def test_a_password_that_saslprep_changes_is_right_as_it_is_and_prepared() -> None:
    """Java's tools hash a password as it is; others prepare it (RFC 4013)."""
    composed = "pass\u00adword \u2168"
    prepared = "password IX"
    for given in (composed, prepared):
        authenticator = Authenticator(
            users_of(AccessState(scram={("alice", SHA_512): credential(SHA_512, given, SALT)}, secret=SECRET)), None
        )
        assert authenticator.basic("alice", composed)
