"""Whatever a client sends before it is logged in: it gets in by right credentials only, and nothing breaks."""

import asyncio
import base64
import logging
import struct

import scramp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule
from support.broker_connections import settle
from support.kafka_wire import request_frame
from support.sasl_clients import PASSWORD_MECHANISMS, PASSWORDS, LoginWorld, SaslClient, plain

from tidelog.broker.wire.apis import ApiKey

HANDSHAKE, AUTHENTICATE = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


names = st.sampled_from([*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI", "", "PLAIN\0"])
scram_words = st.text("nrsipcvmeay=,*0123456789abcAliceZ-_+/é\0", max_size=40)
tokens = st.one_of(
    st.binary(max_size=60),
    scram_words.map(str.encode),
    st.sampled_from(
        ["n,,n=alice,r=abc", "y,,n=bob,r=x", "n,,n=alice,r=", "c=biws,r=abc,p=AAAA", "n,a=alice,n=alice,r=a"]
    ).map(str.encode),
    st.builds(plain, st.sampled_from(["alice", "bob", "eve"]), st.text(max_size=8), st.sampled_from(["", "bob"])),
)
frames = st.one_of(
    st.builds(lambda v, m: request_frame(HANDSHAKE, v, 1, "f", {"mechanism": m}), st.integers(0, 1), names),
    st.builds(lambda v, t: request_frame(AUTHENTICATE, v, 2, "f", {"auth_bytes": t}), st.integers(0, 2), tokens),
    tokens.map(_frame),
    st.just(request_frame(ApiKey.API_VERSIONS, 0, 3, "f", {})),
    st.just(request_frame(ApiKey.LIST_GROUPS, 0, 4, "f", {})),
    st.builds(
        lambda key, version, rest: _frame(struct.pack(">hhih", key, version, 5, -1) + rest),
        st.sampled_from([17, 36, 18, 0, 3, 999]),
        st.integers(-1, 5),
        st.binary(max_size=30),
    ),
    st.binary(max_size=30),
)


@given(st.lists(st.tuples(frames, st.booleans()), max_size=12))
def test_no_bytes_log_in_without_right_credentials(sent: list[tuple[bytes, bool]]) -> None:
    """`sent`: frames, each with whether the client waits for what comes back."""

    async def scenario() -> None:
        unhandled: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        world = LoginWorld(max_receive_bytes=1000)
        client = SaslClient(world)
        for frame, waits in sent:
            client.client.send(frame)
            if waits:
                await settle()
                client.client.transport.take()
        await settle()
        client.client.transport.take()
        assert client.principal == "User:ANONYMOUS"
        assert world.seen == []
        assert world.meter.logins == 0
        client.client.transport.abort()
        await settle()
        assert unhandled == []
        assert world.connections.requests.used == 0
        assert len(world.connections) == 0

    failures: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: failures.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tidelog").addHandler(handler)
    try:
        asyncio.run(scenario())
    finally:
        logging.getLogger("tidelog").removeHandler(handler)
    assert failures == []


class Exchanges(RuleBasedStateMachine):
    """Clients that follow the protocol until they don't: principals and closed connections are as the rules say."""

    clients = Bundle("clients")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = self.loop.run_until_complete(self._world())
        self.expected: dict[SaslClient, str] = {}

    async def _world(self) -> LoginWorld:
        return LoginWorld(max_reauth_s=60)

    def teardown(self) -> None:
        self.loop.run_until_complete(settle())
        for client in self.expected:
            client.client.transport.abort()
        self.loop.run_until_complete(settle())
        assert self.world.connections.requests.used == 0
        self.loop.close()

    @rule(target=clients)
    def connect(self) -> SaslClient:
        async def new() -> SaslClient:
            return SaslClient(self.world)

        client = self.loop.run_until_complete(new())
        self.expected[client] = ""
        return client

    @rule(
        client=clients,
        mechanism=st.sampled_from(PASSWORD_MECHANISMS),
        user=st.sampled_from(["alice", "bob", "eve"]),
        is_right=st.booleans(),
    )
    def log_in(self, client: SaslClient, mechanism: str, user: str, is_right: bool) -> None:
        if client.is_closed:
            return
        was = self.expected[client]
        self.world.clock.now_s += 2
        answer = self.loop.run_until_complete(
            client.log_in(mechanism, user, PASSWORDS.get(user, "?") if is_right else "wrong")
        )
        known = user == "alice" or (user == "bob" and mechanism != "SCRAM-SHA-256")
        may = was in ("", f"User:{user} by {mechanism}")
        succeeds = is_right and known and may
        assert (answer.error_code.value == 0) == succeeds
        assert client.is_closed == (not succeeds)
        if succeeds:
            self.expected[client] = f"User:{user} by {mechanism}"

    @rule(client=clients, message=st.binary(max_size=20))
    def break_off(self, client: SaslClient, message: bytes) -> None:
        """A handshake, a message that is none: the connection ends, logged in or not."""
        mechanism = self.expected[client].partition(" by ")[2] or "SCRAM-SHA-256"
        if client.is_closed:
            return
        self.world.clock.now_s += 2
        self.loop.run_until_complete(client.handshake(mechanism))
        self.loop.run_until_complete(client.authenticate(message))
        assert client.is_closed

    @rule(client=clients, seconds=st.sampled_from([1, 40, 61]))
    def ask(self, client: SaslClient, seconds: int) -> None:
        if client.is_closed:
            return
        before = len(self.world.seen)
        self.loop.run_until_complete(client.groups())
        assert client.is_closed == (len(self.world.seen) == before)
        if not client.is_closed:
            assert self.world.seen[-1].peer.principal == self.expected[client].partition(" by ")[0] != ""
        self.world.clock.now_s += seconds


TestExchanges = Exchanges.TestCase


def with_proof_decoded(final: bytes) -> tuple[bytes, bytes]:
    said, _, proof = final.rpartition(b",p=")
    return said, base64.b64decode(proof)


@example(at=366, byte=ord("d"))
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_message_of_scram_that_is_changed_does_not_log_in(at: int, byte: int) -> None:
    """One byte of the final message is another one: its proof is of the whole. Base64 may end in bits of no byte."""

    async def scenario() -> None:
        client = SaslClient(LoginWorld())
        theirs = scramp.ScramClient(["SCRAM-SHA-256"], "alice", PASSWORDS["alice"])
        await client.handshake("SCRAM-SHA-256")
        answer = await client.authenticate(theirs.get_client_first().encode())
        theirs.set_server_first(answer.auth_bytes.decode())
        final = theirs.get_client_final().encode()
        changed = bytearray(final)
        changed[at % len(final)] = byte
        answer = await client.authenticate(bytes(changed))
        logged_in = answer.error_code.value == 0
        assert logged_in or changed != final
        assert not logged_in or with_proof_decoded(bytes(changed)) == with_proof_decoded(final)

    asyncio.run(scenario())
