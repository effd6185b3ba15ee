"""Log-ins by tokens: OAUTHBEARER's messages, and sessions that end with their token."""

import asyncio
import json

import pytest
from support.broker_connections import settle
from support.sasl_clients import LoginWorld, SaslClient
from support.token_issuers import AUDIENCE, ISSUER, Issuer

from tidelog.access.authenticator import Authenticator
from tidelog.access.public_keys import PublicKeys
from tidelog.access.token_settings import TokenSettings
from tidelog.access.tokens import Tokens
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.sasl.handlers import new_logins
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.errors import InvalidConfigError
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol

NONE, ILLEGAL_STATE, FAILED = 0, 34, 58
PUBLISHED = Issuer()


class World(LoginWorld):
    """A listener with OAUTHBEARER alone."""

    def __init__(self, **sasl):
        told = TokenSettings("https://issuer.test/keys", (AUDIENCE,), ISSUER)
        super().__init__(("OAUTHBEARER",), tokens=told, **sasl)
        tokens = Tokens(told, PublicKeys(told.jwks, 3600, self.clock, PUBLISHED.fetch), self.clock)
        self.logins.authenticator = Authenticator(self.logins.authenticator.users, tokens)

    def message(self, **claims):
        return bearer(PUBLISHED.token(self.clock.now_s, **claims))


def bearer(token, *, begins="n,,", extensions=""):
    return f"{begins}\x01auth=Bearer {token}\x01{extensions}\x01".encode()


def run(scenario):
    async def whole():
        async with asyncio.timeout(60):
            await scenario()
            await settle()

    asyncio.run(whole())


async def log_in(client, message):
    await client.handshake("OAUTHBEARER")
    return await client.authenticate(message)


def test_a_token_logs_in_and_its_end_is_the_sessions():
    async def scenario():
        world = World()
        client = SaslClient(world)
        answer = await log_in(client, world.message())
        assert (answer.error_code.value, answer.session_lifetime.total_seconds()) == (NONE, 300)
        assert client.principal == "User:alice"
        world.clock.now_s += 329  # clocks may differ by 30 s
        assert await client.groups()
        world.clock.now_s += 2
        assert await client.groups() is None
        assert client.is_closed

    run(scenario)


def test_the_setting_ends_a_session_before_its_token():
    async def scenario():
        world = World(max_reauth_s=60)
        client = SaslClient(world)
        assert (await log_in(client, world.message())).session_lifetime.total_seconds() == 60
        world.clock.now_s += 61
        assert await client.groups() is None

    run(scenario)


def test_a_token_that_has_just_ended_is_good_for_a_moment():
    async def scenario():
        world = World()
        client = SaslClient(world)
        answer = await log_in(client, world.message(exp=world.clock.now_s - 1))
        assert answer.error_code.value == NONE
        assert 0 < answer.session_lifetime.total_seconds() < 1
        assert await client.groups()

    run(scenario)


def test_a_client_logs_in_again_with_a_new_token_of_the_same_principal():
    async def scenario():
        world = World()
        client = SaslClient(world)
        await log_in(client, world.message())
        world.clock.now_s += 200
        assert (await log_in(client, world.message())).error_code.value == NONE
        world.clock.now_s += 200
        assert await client.groups()
        assert (await log_in(client, world.message(sub="bob"))).error_code.value == FAILED
        assert client.is_closed

    run(scenario)


@pytest.mark.parametrize("claims", [{"exp": 1}, {"aud": "another"}, {"sub": "__broker"}])
def test_a_token_that_is_refused_gets_a_status_and_then_the_end(claims):
    async def scenario():
        world = World()
        client = SaslClient(world)
        answer = await log_in(client, world.message(**claims))
        assert answer.error_code.value == NONE
        assert json.loads(answer.auth_bytes) == {"status": "invalid_token"}
        assert client.principal == "User:ANONYMOUS"
        assert world.meter.logins_failed == 1, "whether or not the client goes on"
        answer = await client.authenticate(b"\x01")
        assert answer.error_code.value == FAILED
        assert client.is_closed
        assert world.meter.logins_failed == 1

    run(scenario)


def test_after_a_refusal_a_right_token_is_too_late():
    async def scenario():
        world = World()
        client = SaslClient(world)
        await log_in(client, world.message(exp=1))
        assert (await client.authenticate(world.message())).error_code.value == FAILED
        assert await client.groups() is None

    run(scenario)


@pytest.mark.parametrize(
    "options",
    [{"begins": "n,a=alice,"}, {"begins": "y,,"}, {"extensions": "traceId=1\x01logicalCluster=lkc\x01"}],
)
def test_messages_as_clients_send_them(options):
    async def scenario():
        world = World()
        token = PUBLISHED.token(world.clock.now_s)
        assert (await log_in(SaslClient(world), bearer(token, **options))).error_code.value == NONE

    run(scenario)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,\x01auth=Bearer a.b.c\x01",
        b"n,,auth=Bearer a.b.c\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a.b.c\x01\x01",
        b"n,b=alice,\x01auth=Bearer a.b.c\x01\x01",
        b"n,,x\x01auth=Bearer a.b.c\x01\x01",
        b"\xff",
    ],
)
def test_what_is_no_message_of_oauthbearer(message):
    async def scenario():
        client = SaslClient(World())
        assert (await log_in(client, message)).error_code.value == FAILED
        assert client.is_closed

    run(scenario)


def test_no_principal_acts_for_another():
    async def scenario():
        world = World()
        token = PUBLISHED.token(world.clock.now_s)
        answer = await log_in(SaslClient(world), bearer(token, begins="n,a=bob,"))
        assert b"invalid_token" in answer.auth_bytes

    run(scenario)


@pytest.mark.parametrize(
    ("mechanisms", "said"),
    [(("GSSAPI",), "'GSSAPI'; there are PLAIN, SCRAM"), (("OAUTHBEARER",), r"set sasl\.oauthbearer\.jwks")],
)
def test_a_broker_does_not_begin_with_mechanisms_that_there_are_not(mechanisms, said):
    async def scenario():
        listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=mechanisms)
        with pytest.raises(InvalidConfigError, match=said):
            new_logins(BrokerSettings({"X": listener}), LoginWorld().logins)

    run(scenario)


def test_where_nothing_else_is_said_a_listener_has_scram(requests):
    async def scenario():
        listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT)
        new = new_logins(BrokerSettings({"X": listener, "Y": ListenerSettings("", 0)}), LoginWorld().logins)
        assert new("X", print)._offered == ("SCRAM-SHA-256", "SCRAM-SHA-512")
        assert new("Y", print) is None

    run(scenario)


def test_a_listener_without_sasl_says_so(requests):
    for version in (0, 1):
        answer = requests.ask(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"})
        assert (answer.error_code.value, answer.mechanisms) == (ILLEGAL_STATE, ())
    for version in (0, 1, 2):
        answer = requests.ask(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": b"x"})
        assert answer.error_code.value == ILLEGAL_STATE
