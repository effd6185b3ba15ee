"""Requests to a broker's handlers, through the codec as on the wire, without sockets and threads."""

import asyncio
import io
import typing
from dataclasses import MISSING, fields, replace
from datetime import timedelta
from types import NoneType

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tidelog.broker.base.calls import Call, Encoded, Peer
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.base.settings import BrokerSettings, GroupSettings
from tidelog.broker.broker import Broker
from tidelog.broker.wire.messages import decode, encode
from tidelog.server.base.listener_settings import ListenerSettings

LISTENER = "PLAINTEXT"
SETTINGS = BrokerSettings(
    {LISTENER: ListenerSettings("127.0.0.1", 0)}, id=1, groups=GroupSettings(streams_initial_rebalance_delay_ms=0)
)


class Requests:
    """A broker over a lake that answers in the caller's thread. A context manager."""

    def __init__(self, lake, view=None, **settings):
        self.loop = asyncio.new_event_loop()
        self.broker = self.loop.run_until_complete(self._make(lake, view, settings))

    async def _make(self, lake, view, settings):
        broker = Broker(lake, replace(SETTINGS, **settings), _at_once)
        broker.addresses[LISTENER] = ("127.0.0.1", 9092)
        own = broker._context.settings
        alone = ClusterView("tidelog", 0, (BrokerNode(own.id, broker.addresses, own.rack),), own.id)
        object.__setattr__(broker._context, "cluster", view or (lambda: alone))
        return broker

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.run_until_complete(self.broker.close())
        self.loop.close()

    def ask(self, key, version, body=None, **sender):
        """The answer of a version as kio's entity. `body`: the request in the versions' names."""
        return self.loop.run_until_complete(self.answer(key, version, body, **sender))

    def reply(self, key, version, body, principal="User:ANONYMOUS"):
        """The answer as its handler gives it, which can be encoded; kio reads no time of -1."""
        request = memoryview(body if isinstance(body, bytes) else request_of(key, version, body))
        call = Call(
            key,
            version,
            None,
            decode(key, version, request),
            Peer(LISTENER, "", principal),
            self.broker.clock.elapsed_s(),
        )
        reply = self.loop.run_until_complete(self.broker.handlers[key](call))
        assert isinstance(reply, Encoded) or encode(key, version, reply)
        return reply

    def ask_encoded(self, key, version, request):
        """As `ask`, for a request's bytes."""
        return self.loop.run_until_complete(self.answer(key, version, request))

    async def answer(
        self, key, version, body=None, *, client_id=None, listener=LISTENER, principal="User:ANONYMOUS", throttled=None
    ):
        """As `ask`, for what runs in the broker's loop. `throttled`: the request, where quotas are set."""
        request = body if isinstance(body, bytes) else request_of(key, version, body or {})
        now_s = self.broker.clock.elapsed_s()
        call = Call(
            key, version, client_id, decode(key, version, memoryview(request)), Peer(listener, "", principal), now_s
        )
        if throttled is None:
            reply = await self.broker.handlers[key](call)
        else:
            reply = await throttled.run(self.broker.handlers[key], replace(call, allowance=throttled))
        encoded = b"".join(reply.pieces) if isinstance(reply, Encoded) else encode(key, version, reply)
        answer, end = entity_reader(load_response_schema(key, version))(encoded, 0)
        assert end == len(encoded)
        return answer


def error_codes(answer):
    """All error codes in an answer, as its handler gives it."""
    if isinstance(answer, Encoded):
        return set(answer.errors)
    if isinstance(answer, list | tuple):
        return {code for one in answer for code in error_codes(one)}
    if not isinstance(answer, dict):
        return set()
    own = {int(code) for name, code in answer.items() if name in ("error_code", "partition_error_code")}
    return own | error_codes(list(answer.values()))


def request_of(key, version, body):
    """A request's bytes; times are int ms. What the version lacks is left out."""
    schema = load_request_schema(key, version)
    buffer = io.BytesIO()
    entity_writer(schema)(buffer, _entity(schema, body))
    return buffer.getvalue()


def _entity(schema, body):
    hints = typing.get_type_hints(schema)
    given = {}
    for f in fields(schema):
        kinds = [kind for kind in typing.get_args(hints[f.name]) if kind is not NoneType]
        optional = NoneType in typing.get_args(hints[f.name])
        bare = kinds[0] if optional else hints[f.name]
        is_array = typing.get_origin(bare) is tuple
        if f.name not in body:
            if f.default is MISSING:
                given[f.name] = None if optional else () if is_array else _ZEROS.get(f.metadata.get("kafka_type"), 0)
            continue
        value = body[f.name]
        if value is not None and f.metadata.get("kafka_type") is None:
            item = typing.get_args(bare)[0] if is_array else bare
            value = tuple(_entity(item, one) for one in value) if is_array else _entity(item, value)
        elif value is not None and f.metadata.get("kafka_type") == "timedelta_i32":
            value = timedelta(milliseconds=value)
        elif is_array and value is not None:
            value = tuple(value)
        given[f.name] = value
    return schema(**given)


_ZEROS = {"timedelta_i32": timedelta(), "bool": False, "string": ""}


async def _at_once(call, /, *args, **kwargs):
    return call(*args, **kwargs)
