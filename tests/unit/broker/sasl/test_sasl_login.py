"""Connections on a listener with SASL: which clients get in, what is refused before and after, when sessions end."""

import asyncio
import json
import logging
import struct

import pytest
import scramp
from support.broker_connections import settle
from support.kafka_wire import request_frame
from support.sasl_clients import PASSWORD_MECHANISMS, PASSWORDS, LoginWorld, SaslClient, plain
from support.waiting import eventually_async

from tidelog.broker.server.metrics import broker_metrics
from tidelog.broker.wire.apis import ApiKey

NONE, UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 0, 33, 34, 58


def run(scenario, *, seconds=60):
    async def whole():
        unhandled = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        async with asyncio.timeout(seconds):
            await scenario()
        await settle()
        assert unhandled == []

    asyncio.run(whole())


# --- credentials -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_a_user_logs_in_and_is_the_principal_of_its_requests(mechanism):
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        assert client.principal == "User:ANONYMOUS"
        answer = await client.log_in(mechanism, "alice", PASSWORDS["alice"])
        assert (answer.error_code.value, answer.error_message) == (NONE, None)
        assert answer.session_lifetime.total_seconds() == 0
        assert client.principal == "User:alice"
        assert (await client.groups()).groups == ()
        assert [call.peer.principal for call in world.seen] == ["User:alice"]
        assert (world.meter.logins, world.meter.logins_failed) == (1, 0)

    run(scenario)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
@pytest.mark.parametrize(
    ("user", "password"),
    [("alice", "wrong"), ("alice", "bob's own"), ("mallory", "alice's own"), ("__broker", "guess")],
)
def test_wrong_credentials_are_refused_in_the_same_words(mechanism, user, password, caplog):
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        with caplog.at_level(logging.INFO):
            answer = await client.log_in(mechanism, user, password)
        assert answer.error_code.value == FAILED
        assert answer.error_message == f"Authentication failed: invalid credentials with SASL mechanism {mechanism}."
        assert answer.auth_bytes == b""
        assert client.is_closed
        assert client.principal == "User:ANONYMOUS"
        assert (world.meter.logins, world.meter.logins_failed) == (0, 1)
        audited, line = [record.getMessage() for record in caplog.records]
        assert f"its log-in by {mechanism} as {user!r} failed: " in line
        fields = json.loads(audited)
        assert (fields["event"], fields["mechanism"], fields["user"]) == ("not authenticated", mechanism, user)
        assert password not in line + audited

    run(scenario)


def test_a_user_of_the_other_scram_mechanism_only_is_like_an_unknown_one():
    async def scenario():
        answers = []
        for user, password in (("bob", PASSWORDS["bob"]), ("mallory", "x")):
            client = SaslClient(LoginWorld())
            answers.append(await client.log_in("SCRAM-SHA-256", user, password))
        assert answers[0] == answers[1]
        assert answers[0].error_code.value == FAILED
        other = await SaslClient(LoginWorld()).log_in("SCRAM-SHA-512", "bob", PASSWORDS["bob"])
        assert other.error_code.value == NONE

    run(scenario)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0alice",
        b"\0\0alice's own",
        b"\0alice\0",
        plain("alice", PASSWORDS["alice"], other="bob"),
        plain("alice", PASSWORDS["alice"]) + b"\0",
        b"\0alice\0\xff",
        plain("alice", "x" * 20_000),
    ],
)
def test_what_is_no_plain_message_is_refused(message):
    async def scenario():
        client = SaslClient(LoginWorld())
        await client.handshake("PLAIN")
        assert (await client.authenticate(message)).error_code.value == FAILED
        assert client.is_closed

    run(scenario)


def test_a_user_may_name_itself_as_the_one_it_acts_for():
    async def scenario():
        client = SaslClient(LoginWorld())
        await client.handshake("PLAIN")
        answer = await client.authenticate(plain("alice", PASSWORDS["alice"], other="alice"))
        assert answer.error_code.value == NONE

    run(scenario)


@pytest.mark.parametrize(
    "begins",
    [
        "p=tls-unique,,n=alice,r=abc",
        "p=tls-exporter,,n=alice,r=abc",
        "n,a=bob,n=alice,r=abc",
        "n,,n=alice,r=abc,tokenauth=true",
        "n,,m=x,n=alice,r=abc",
        "n,,n=al=ice,r=abc",
        "n,,r=abc,n=alice",
        "n,,n=,r=abc",
        "n,,n=alice,r=",
        "n,,n=" + "a" * 2000 + ",r=abc",
        "",
    ],
)
def test_what_is_no_first_message_of_scram_is_refused(begins):
    async def scenario():
        client = SaslClient(LoginWorld())
        await client.handshake("SCRAM-SHA-256")
        assert (await client.authenticate(begins.encode())).error_code.value == FAILED
        assert client.is_closed

    run(scenario)


def test_a_scram_client_that_knows_of_no_channel_binding_is_let_in():
    """'y' says that the client could bind the channel if the server could: the server must only refuse it if so."""

    async def scenario():
        client = SaslClient(LoginWorld())
        theirs = scramp.ScramClient(["SCRAM-SHA-512"], "alice", PASSWORDS["alice"])
        await client.handshake("SCRAM-SHA-512")
        first = theirs.get_client_first()
        theirs.gs2_header.gs2_char = "y"
        answer = await client.authenticate(("y" + first[1:]).encode())
        theirs.set_server_first(answer.auth_bytes.decode())
        answer = await client.authenticate(theirs.get_client_final().encode())
        assert answer.error_code.value == NONE
        theirs.set_server_final(answer.auth_bytes.decode())

    run(scenario)


def test_a_scram_proof_is_good_for_one_exchange_only():
    async def scenario():
        world = LoginWorld()
        first, second = SaslClient(world), SaslClient(world)
        theirs = scramp.ScramClient(["SCRAM-SHA-256"], "alice", PASSWORDS["alice"])
        begins = theirs.get_client_first().encode()
        for client in (first, second):
            await client.handshake("SCRAM-SHA-256")
        theirs.set_server_first((await first.authenticate(begins)).auth_bytes.decode())
        final = theirs.get_client_final().encode()
        await second.authenticate(begins)
        assert (await second.authenticate(final)).error_code.value == FAILED
        assert (await first.authenticate(final)).error_code.value == NONE

    run(scenario)


# --- before a log-in ---------------------------------------------------------------------------------------


def test_nothing_else_is_answered_before_a_log_in(caplog):
    async def scenario():
        for steps in (0, 1, 2):
            world = LoginWorld()
            client = SaslClient(world)
            if steps:
                assert (await client.ask(ApiKey.API_VERSIONS, 0)).error_code.value == NONE
            if steps == 2:
                await client.handshake("PLAIN")
            assert await client.groups() is None
            assert client.is_closed
            assert world.seen == []
        assert "it sent LIST_GROUPS before it had logged in" in caplog.text

    run(scenario)


def test_a_request_that_comes_along_with_the_log_in_waits_for_it():
    async def scenario():
        for password, seen in ((PASSWORDS["alice"], ["User:alice"]), ("wrong", [])):
            world = LoginWorld()
            client = SaslClient(world)
            fields = ({"mechanism": "PLAIN"}, {"auth_bytes": plain("alice", password)}, {})
            keys = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.LIST_GROUPS)
            frames = [
                request_frame(key, 0 if key is keys[2] else 1, 1, "", one)
                for key, one in zip(keys, fields, strict=True)
            ]
            client.client.send(b"".join(frames))
            await settle()
            assert [call.peer.principal for call in world.seen] == seen

    run(scenario)


def test_a_listener_lists_its_mechanisms_and_takes_no_other():
    async def scenario():
        world = LoginWorld(("SCRAM-SHA-512",))
        client = SaslClient(world)
        assert (await client.handshake("SCRAM-SHA-512")).mechanisms == ("SCRAM-SHA-512",)
        for wanted in ("PLAIN", "GSSAPI", "SCRAM-SHA-512-PLUS", ""):
            client = SaslClient(world)
            answer = await client.handshake(wanted)
            assert (answer.error_code.value, answer.mechanisms) == (UNSUPPORTED_MECHANISM, ("SCRAM-SHA-512",))
            assert client.is_closed

    run(scenario)


def test_messages_out_of_turn_end_the_connection():
    async def scenario():
        client = SaslClient(LoginWorld())
        assert (await client.authenticate(plain("alice", PASSWORDS["alice"]))).error_code.value == ILLEGAL_STATE
        assert client.is_closed
        client = SaslClient(LoginWorld())
        await client.handshake("PLAIN")
        assert (await client.handshake("PLAIN")).error_code.value == ILLEGAL_STATE
        assert client.is_closed

    run(scenario)


def test_a_large_request_is_refused_before_a_log_in_and_taken_after(caplog):
    async def scenario():
        world = LoginWorld(max_receive_bytes=1000, bounds={"request_max_bytes": 5000})
        client = SaslClient(world)
        client.client.send(struct.pack(">i", 1001))
        assert client.is_closed
        assert "sasl.server.max.receive.size is 1000" in caplog.text
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        client.client.send(struct.pack(">i", 5000))
        assert not client.is_closed
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        client.client.send(struct.pack(">i", 5001))
        assert client.is_closed
        world.connections.lines.finish()
        assert "socket.request.max.bytes is 5000" in caplog.text

    run(scenario)


def test_a_client_that_does_not_log_in_is_closed_in_time():
    async def scenario():
        world = LoginWorld(login_within_s=30)
        silent, busy, done = SaslClient(world), SaslClient(world), SaslClient(world)
        await done.log_in("PLAIN", "alice", PASSWORDS["alice"])
        world.clock.now_s += 29
        await busy.ask(ApiKey.API_VERSIONS, 0)
        world.connections.look()
        assert not silent.is_closed
        world.clock.now_s += 1
        world.connections.look()
        assert [one.is_closed for one in (silent, busy, done)] == [True, True, False]

    run(scenario)


def test_a_client_that_is_not_logged_in_has_one_request_at_a_time():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        ask = request_frame(ApiKey.SASL_HANDSHAKE, 1, 1, "", {"mechanism": "PLAIN"})
        client.client.send(ask)
        assert not client.client.transport.reading
        await settle()
        assert client.client.transport.reading

    run(scenario)


# --- SaslHandshake 0 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_an_old_client_logs_in_by_messages_without_headers(mechanism):
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        assert (await client.handshake(mechanism, 0)).error_code.value == NONE
        theirs = scramp.ScramClient([mechanism], "alice", PASSWORDS["alice"]) if mechanism != "PLAIN" else None
        if theirs is None:
            assert await client.send_raw(plain("alice", PASSWORDS["alice"])) == b""
        else:
            theirs.set_server_first((await client.send_raw(theirs.get_client_first().encode())).decode())
            theirs.set_server_final((await client.send_raw(theirs.get_client_final().encode())).decode())
        assert client.principal == "User:alice"
        assert (await client.groups()).error_code.value == NONE

    run(scenario)


def test_an_old_client_with_a_wrong_password_gets_no_answer():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        await client.handshake("PLAIN", 0)
        assert await client.send_raw(plain("alice", "wrong")) is None
        assert client.is_closed
        assert world.meter.logins_failed == 1

    run(scenario)


# --- sessions ----------------------------------------------------------------------------------------------


def test_a_session_ends_unless_its_client_logs_in_again(caplog):
    async def scenario():
        world = LoginWorld(max_reauth_s=60)
        keeps, forgets = SaslClient(world), SaslClient(world)
        for client in (keeps, forgets):
            answer = await client.log_in("SCRAM-SHA-512", "alice", PASSWORDS["alice"])
            assert answer.session_lifetime.total_seconds() == 60
        world.clock.now_s += 50
        answer = await keeps.log_in("SCRAM-SHA-512", "alice", PASSWORDS["alice"])
        assert answer.error_code.value == NONE
        world.clock.now_s += 10
        assert await keeps.groups()
        assert await forgets.groups() is None
        assert [client.is_closed for client in (keeps, forgets)] == [False, True]
        assert "the session of 'User:alice' is over" in caplog.text
        assert (world.meter.logins, world.meter.logins_again) == (2, 1)

    run(scenario)


def test_a_client_may_log_in_again_when_its_session_has_just_ended():
    async def scenario():
        world = LoginWorld(max_reauth_s=60)
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        world.clock.now_s += 61
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        assert await client.groups()

    run(scenario)


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_who_logs_in_again_may_not_become_another_and_learns_nothing(mechanism):
    """Another user's right password is refused in the words of a wrong one: a session is no place for guesses."""

    async def scenario():
        said = []
        for password in (PASSWORDS["bob"], "wrong"):
            world = LoginWorld(max_reauth_s=60)
            client = SaslClient(world)
            await client.log_in(mechanism, "alice", PASSWORDS["alice"])
            world.clock.now_s += 10
            said.append(await client.log_in(mechanism, "bob", password))
            assert client.is_closed
            assert world.meter.logins_failed == 1
        assert said[0] == said[1]
        assert said[0].error_code.value == FAILED

    run(scenario)


def test_who_logs_in_again_keeps_the_mechanism():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        world.clock.now_s += 10
        assert (await client.handshake("SCRAM-SHA-256")).error_code.value == UNSUPPORTED_MECHANISM
        assert client.is_closed

    run(scenario)


def test_a_client_may_log_in_again_once_a_second_and_not_by_messages_without_headers():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        assert (await client.log_in("PLAIN", "alice", PASSWORDS["alice"])).error_code.value == NONE
        world.clock.now_s += 0.9
        assert (await client.handshake("PLAIN")).error_code.value == ILLEGAL_STATE
        world.clock.now_s += 0.1
        assert (await client.handshake("PLAIN", 0)).error_code.value == ILLEGAL_STATE
        assert (await client.authenticate(b"x")).error_code.value == ILLEGAL_STATE
        assert await client.groups(), "the session of before goes on"

    run(scenario)


# --- tries -------------------------------------------------------------------------------------------------


def test_an_address_that_fails_too_often_is_not_heard_for_a_while(caplog):
    async def scenario():
        world = LoginWorld(failures_per_minute=3)
        inside = SaslClient(world)
        await inside.log_in("PLAIN", "alice", PASSWORDS["alice"])
        for _ in range(3):
            await SaslClient(world).log_in("PLAIN", "alice", "wrong")
        blocked = SaslClient(world)
        assert await blocked.log_in("PLAIN", "alice", PASSWORDS["alice"]) is None
        assert blocked.is_closed
        world.connections.lines.finish()
        assert "too many log-ins of its address have failed" in caplog.text
        elsewhere = SaslClient(world, host="10.9.9.9")
        assert (await elsewhere.log_in("PLAIN", "alice", PASSWORDS["alice"])).error_code.value == NONE
        world.clock.now_s += 5
        answer = await inside.log_in("PLAIN", "alice", PASSWORDS["alice"])
        assert answer.error_code.value == NONE, "a client that is in may log in again"
        world.clock.now_s += 16
        assert (await SaslClient(world).log_in("PLAIN", "alice", PASSWORDS["alice"])).error_code.value == NONE

    run(scenario)


def test_an_address_has_no_more_tries_by_many_connections_at_once():
    async def scenario():
        world = LoginWorld(failures_per_minute=5)
        clients = [SaslClient(world) for _ in range(50)]
        for client in clients:
            assert (await client.handshake("PLAIN")).error_code.value == NONE
        for client in clients:
            client.client.send(
                request_frame(ApiKey.SASL_AUTHENTICATE, 1, 9, "", {"auth_bytes": plain("alice", "wrong")})
            )
        while not all(client.is_closed for client in clients):
            await settle()
            for client in clients:
                client.client.transport.take()
        assert 5 <= world.meter.logins_failed <= 6

    run(scenario)


def test_the_answer_to_wrong_credentials_waits():
    async def scenario():
        world = LoginWorld(failed_delay_s=0.05)
        client, loop = SaslClient(world), asyncio.get_running_loop()
        began_s = loop.time()
        assert await client.log_in("PLAIN", "alice", "wrong") is None
        await eventually_async(lambda: client.client.transport.take() and client.is_closed, "the answer")
        assert loop.time() - began_s >= 0.05

    run(scenario)


def test_log_ins_are_in_the_metrics():
    async def scenario():
        world = LoginWorld()
        client = SaslClient(world)
        for _ in range(2):
            await client.log_in("PLAIN", "alice", PASSWORDS["alice"])
        for _ in range(3):
            await SaslClient(world).log_in("PLAIN", "alice", "wrong")
        families = broker_metrics(world.meter, world.connections, lambda: False)
        shown = {family.name: family.samples[0][1] for family in families if "authentication" in family.name}
        name = "kafka_server_socket_server_metrics"
        assert shown == {
            f"{name}_successful_authentication": 1,
            f"{name}_successful_reauthentication": 1,
            f"{name}_failed_authentication": 3,
        }

    run(scenario)
