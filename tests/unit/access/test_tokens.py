"""Tokens: which are accepted, and the keys of their issuer."""

import base64
import hmac
import json
import threading
from collections.abc import Callable
from http.client import IncompleteRead
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import OctKey
from support.broker_connections import FakeClock
from support.token_issuers import AUDIENCE, ISSUER, Issuer, new_key
from support.waiting import PATIENCE_S

from tidelog.access.model import Identity
from tidelog.access.public_keys import LEAST_S, RETRY_S, PublicKeys, fetched
from tidelog.access.token_settings import TokenSettings
from tidelog.access.tokens import MOST_BYTES, Tokens
from tidelog.log.base.errors import AuthenticationError, InvalidConfigError

ADDRESS = "https://issuer.test/keys.json"
RSA, EC, ED25519 = Issuer(), Issuer("e1", "EC"), Issuer("o1", "OKP")


class World:
    """A broker's view of an issuer."""

    def __init__(self, publisher: Issuer = RSA, /, **settings: Any) -> None:
        self.clock = FakeClock()
        self.issuer = publisher
        told = TokenSettings(ADDRESS, **{"audiences": (AUDIENCE,), "issuer": ISSUER, **settings})
        self.keys = PublicKeys(ADDRESS, told.refresh_s, self.clock, publisher.fetch)
        self.tokens = Tokens(told, self.keys, self.clock)

    def token(self, **claims: Any) -> str:
        return self.issuer.token(self.clock.now_s, **claims)

    def refusal(self, token: str) -> str:
        with pytest.raises(AuthenticationError) as refused:
            self.tokens.identity(token)
        assert "credentials are not valid" in str(refused.value)
        return refused.value.reason


@pytest.mark.parametrize("issuer", [RSA, EC, ED25519], ids=["RS256", "ES256", "Ed25519"])
def test_a_token_names_its_principal_and_its_end(issuer: Issuer) -> None:
    world = World(issuer)
    assert world.tokens.identity(world.token()) == Identity("User:alice", world.clock.now_s + 300)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 969}, "expired_token"),
        ({"exp": None}, "missing_claim"),
        ({"exp": "never"}, "invalid_claim"),
        ({"exp": float("nan")}, "invalid_claim"),
        ({"nbf": 1031}, "invalid_claim"),
        ({"iat": 1031}, "invalid_claim"),
        ({"aud": "another"}, "invalid_claim"),
        ({"aud": None}, "missing_claim"),
        ({"aud": ["another", "third"]}, "invalid_claim"),
        ({"iss": "https://issuer.test/"}, "invalid_claim"),
        ({"iss": None}, "missing_claim"),
        ({"sub": None}, "no claim sub"),
        ({"sub": ""}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": 7}, "invalid_claim"),
        ({"sub": "__broker"}, "only brokers are"),
    ],
)
def test_what_a_token_may_not_say(claims: dict[str, Any], reason: str) -> None:
    world = World()
    assert reason in world.refusal(world.token(**claims))


@pytest.mark.parametrize(
    "claims", [{"exp": 971}, {"nbf": 1030}, {"iat": 1030}, {"aud": ["another", AUDIENCE]}, {"scope": None}]
)
def test_what_a_token_may_say(claims: dict[str, Any]) -> None:
    world = World()
    assert world.tokens.identity(world.token(**claims)).principal == "User:alice"


def test_without_an_audience_and_an_issuer_configured_any_will_do() -> None:
    world = World(audiences=(), issuer=None)
    assert world.tokens.identity(world.token(aud=None, iss=None)).principal == "User:alice"


def test_another_claim_can_name_the_principal() -> None:
    world = World(sub_claim="client_id")
    assert world.tokens.identity(world.token(client_id="job", sub=None)).principal == "User:job"
    assert "no claim client_id" in world.refusal(world.token(client_id=["job"]))


@pytest.mark.parametrize("scope", ["read write more", ["read", "write"]])
def test_scopes_that_are_asked_for(scope: Any) -> None:
    world = World(scopes=("read", "write"), scope_claim="scp")
    assert world.tokens.identity(world.token(scp=scope)).principal == "User:alice"
    for fewer in ("read", ["read", 7], None, {"read": "write"}, "readwrite"):
        assert "lacks the scopes" in world.refusal(world.token(scp=fewer))


def forged(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    def encoded(part: bytes) -> str:
        return base64.urlsafe_b64encode(part).decode().rstrip("=")

    signed = ".".join(encoded(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{encoded(sign(signed.encode()))}"


RIGHT = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": 1300}


@pytest.mark.parametrize("algorithm", ["none", "NONE", "", None, 7, ["RS256"], "HS256", "RS1", "ES256K"])
@pytest.mark.parametrize("kid", ["k1", None, 7, {"a": 1}])
def test_unsigned_tokens_and_other_algorithms_are_refused(algorithm: Any, kid: Any) -> None:
    World().refusal(forged({"alg": algorithm, "kid": kid}, RIGHT))


def test_a_public_key_is_no_secret_to_sign_with() -> None:
    """The confusion of algorithms: the public key, which anyone has, as the secret of an HMAC (RFC 8725, 2.1)."""
    world = World()
    public = world.issuer.keys[0].as_pem(private=False)
    for header in ({"alg": "HS256", "kid": "k1"}, {"alg": "HS256"}):
        token = forged(header, RIGHT, lambda signed: hmac.digest(public, signed, "sha256"))
        assert "'HS256', which is not accepted" in world.refusal(token)


def test_a_secret_among_the_published_keys_is_passed_over() -> None:
    issuer = Issuer()
    secret = OctKey.import_key({"kty": "oct", "k": "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0", "kid": "s"})
    issuer.keys.append(secret)
    world = World(issuer)
    assert world.tokens.identity(world.token()).principal == "User:alice"
    assert world.keys.candidates("s", "HS256") == []
    world.refusal(world.token(key=secret))


def test_another_key_with_the_same_id_does_not_sign() -> None:
    world = World()
    for kind in ("RSA", "EC"):
        assert "no key of the issuer" in world.refusal(world.token(key=new_key(kind, "k1")))


def test_keys_that_a_token_brings_or_points_at_are_not_looked_at() -> None:
    world = World()
    own = new_key("RSA", "own")
    for header in (
        {"jwk": own.as_dict(private=False)},
        {"jku": "https://attacker.test/keys", "kid": "own"},
        {"x5u": "https://attacker.test/cert", "kid": "k1"},
    ):
        world.refusal(world.token(key=own, header=header))


def test_a_header_with_extensions_that_must_be_understood_is_refused() -> None:
    world = World()

    def by_the_issuer(signed: bytes) -> bytes:
        return jws.JWSRegistry.algorithms["RS256"].sign(signed, world.issuer.keys[0])

    assert world.tokens.identity(forged({"alg": "RS256", "kid": "k1"}, RIGHT, by_the_issuer))
    for crit in (["exp"], [], "exp", ["b64"], None):
        header = {"alg": "RS256", "kid": "k1", "crit": crit, "exp": 1, "b64": True}
        world.refusal(forged(header, RIGHT, by_the_issuer))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_token_that_was_changed_is_refused(at: int) -> None:
    world = World()
    parts = world.token().split(".")
    parts[at] = parts[at][:10] + ("A" if parts[at][10] != "A" else "B") + parts[at][11:]
    world.refusal(".".join(parts))


@pytest.mark.parametrize(
    "token", ["", "a.b.c", "..", "a.b", "é.é.é", "x" * (MOST_BYTES + 1), "eyJhbGciOiJub25lIn0.e30."]
)
def test_what_is_no_token(token: str) -> None:
    World().refusal(token)


def test_claims_that_are_nested_too_deeply_are_refused() -> None:
    world = World()
    deep = base64.urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")
    world.refusal(f"{deep}.{deep}.c2ln")


FUZZED = World()


@given(st.text(max_size=200) | st.builds("{}.{}.{}".format, *[st.text("abceyJ_-09", max_size=60)] * 3))
def test_no_text_is_a_token(text: str) -> None:
    FUZZED.refusal(text)


# --- keys --------------------------------------------------------------------------------------------------


def test_keys_are_fetched_once_and_again_when_they_are_old() -> None:
    world = World(Issuer(), refresh_s=100)
    for _ in range(3):
        world.tokens.identity(world.token())
    assert world.issuer.fetched == 1
    world.clock.now_s += 100
    world.tokens.identity(world.token())
    assert world.issuer.fetched == 2


def test_a_new_key_counts_at_once_and_made_up_ones_flood_no_issuer() -> None:
    world = World(Issuer())
    world.tokens.identity(world.token())
    world.clock.now_s += LEAST_S
    new = new_key("EC", "k2")
    world.issuer.keys.append(new)
    assert world.tokens.identity(world.token(key=new)).principal == "User:alice"
    assert world.issuer.fetched == 2
    for number in range(50):
        assert "no key" in world.refusal(world.token(header={"kid": f"made up {number}"}))
    assert world.issuer.fetched == 2
    world.clock.now_s += LEAST_S
    world.refusal(world.token(header={"kid": "made up"}))
    assert world.issuer.fetched == 3


def test_a_key_that_is_taken_back_counts_no_more_after_the_next_look() -> None:
    world = World(Issuer(), refresh_s=100)
    old = world.issuer.keys[0]
    world.tokens.identity(world.token())
    world.issuer.keys = [new_key("EC", "k2")]
    world.clock.now_s += 100
    assert "no key" in world.refusal(world.token(key=old))


@pytest.mark.parametrize("failure", [OSError("refused"), IncompleteRead(b""), ValueError("no JSON")])
def test_keys_that_can_not_be_had_leave_those_of_before(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    world = World(Issuer(), refresh_s=100)
    world.tokens.identity(world.token())
    world.clock.now_s += 100
    world.issuer.failure = failure
    for _ in range(3):
        world.tokens.identity(world.token())
        world.clock.now_s += RETRY_S
    assert world.issuer.fetched == 4
    assert caplog.text.count("can't be had") == 1
    world.issuer.failure = None
    with caplog.at_level("INFO"):
        world.tokens.identity(world.token())
    assert "are there again" in caplog.text


def test_without_keys_no_token_is_accepted_until_they_come() -> None:
    world = World(Issuer())
    world.issuer.failure = OSError("refused")
    assert "no key of the issuer" in world.refusal(world.token())
    world.issuer.failure = None
    assert "no key of the issuer" in world.refusal(world.token()), "it was asked a moment ago"
    world.clock.now_s += RETRY_S
    assert world.tokens.identity(world.token()).principal == "User:alice"


def test_no_token_waits_for_a_look_that_it_does_not_need() -> None:
    """While one thread waits for the issuer, tokens with known keys are checked, and made-up ones are refused."""
    world = World(Issuer())
    world.tokens.identity(world.token())
    found: list[object] = []

    def check() -> None:
        found.append(world.tokens.identity(world.token()))
        found.append(world.refusal(world.token(header={"kid": "made up"})))

    with world.keys._one_at_a_time:
        thread = threading.Thread(target=check, daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        assert len(found) == 2


def test_a_token_without_a_key_id_is_tried_with_all_keys() -> None:
    world = World(Issuer())
    world.issuer.keys[:0] = [new_key("RSA", "k0"), new_key("EC", "k5")]
    assert world.tokens.identity(world.token(key=world.issuer.keys[-1], header={"kid": None})).principal


@pytest.mark.parametrize("parameter", [{"use": "enc"}, {"alg": "RS512"}])
def test_a_key_for_something_else_does_not_sign(parameter: dict[str, str]) -> None:
    issuer = Issuer()
    published = json.loads(issuer.published())
    published["keys"][0] |= parameter
    clock = FakeClock()
    keys = PublicKeys(ADDRESS, 100, clock, lambda *_: json.dumps(published).encode())
    assert keys.candidates("k1", "RS256") == []
    del published["keys"][0][next(iter(parameter))]
    clock.now_s += LEAST_S
    assert len(keys.candidates("k1", "RS256")) == 1


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b'{"keys": [{"kty": "RSA"}]}'])
def test_what_is_no_set_of_keys(text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    keys = PublicKeys(ADDRESS, 100, FakeClock(), lambda *_: text)
    assert keys.candidates(None, "RS256") == []
    assert "can't be had" in caplog.text


@pytest.mark.parametrize(
    "address", ["", "keys.json", "ftp://issuer.test/k", "file://", "https://", "https://u:p@i.test/k"]
)
def test_what_is_no_address_of_keys(address: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url") as refusal:
        PublicKeys(address, 100, FakeClock())
    assert "u:p" not in str(refusal.value)


def test_keys_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "issuer's keys.json"
    path.write_bytes(RSA.published())
    keys = PublicKeys(path.as_uri(), 100, FakeClock())
    assert len(keys.candidates("k1", "RS256")) == 1
    path.write_bytes(b"x" * (1024 * 1024 + 1))
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        fetched(path.as_uri(), FakeClock())
