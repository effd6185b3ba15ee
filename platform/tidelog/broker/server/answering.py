"""How a request is answered: a small one at once, a large one beside the loop and in slices.

No request holds the loop for long, whatever its size: what is large is decoded and encoded in a thread of its own, and
its handler is given one slice at a time. A few large requests are answered at once, the others wait for their turn.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tidelog.broker.access.throttling import ThrottledRequest
from tidelog.broker.base.calls import Call, Encoded, Handler, Peer, Reply
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import Header
from tidelog.broker.wire.messages import FEW_ELEMENTS, Answer, decode, encode, errors_in
from tidelog.broker.wire.slicing import DEPTHS, is_large, joined, sliced
from tidelog.server.base.blocking import Blocking, here, turn

# An answer's body, encoded; None where the client asked for none.
Pieces = Sequence[bytes | memoryview] | None
# Large requests whose slices are answered in turns.
AT_ONCE: Final = 2


class LargeRequests:
    """Where a broker's large requests have their turn. `beside`: how they are decoded and encoded."""

    def __init__(self, beside: Blocking = here) -> None:
        self.beside = beside
        self.turns = asyncio.Semaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Answering:
    """One request on its way through its handler."""

    large: LargeRequests
    header: Header
    peer: Peer
    came_s: float
    throttled: ThrottledRequest | None

    async def answer(self, handler: Handler, body: Any, errors: Counter[int]) -> Pieces:
        """The answer to a request that is decoded. `errors`: where its errors are counted."""
        header = self.header
        if self.throttled is None:
            reply = await handler(Call(header.key, header.version, header.client_id, body, self.peer, self.came_s))
        else:
            call = Call(header.key, header.version, header.client_id, body, self.peer, self.came_s, self.throttled)
            reply = await self.throttled.run(handler, call)
        return await self._encoded(reply, errors)

    async def decoded(self, payload: memoryview) -> Sequence[Any]:
        """A large request in slices. Raises `MalformedRequestError`."""
        return await self.large.beside(_in_slices, self.header.key, self.header.version, payload)

    async def answer_large(self, handler: Handler, bodies: Sequence[Any], errors: Counter[int]) -> Pieces:
        """The answer to a large request, of these slices."""
        if self.header.key not in DEPTHS:  # it is one slice, and may wait for others
            return await self.answer(handler, bodies[0], errors)

        async def one_by_one(call: Call) -> Reply:
            answers: list[Answer] = []
            for body in bodies:
                reply = await handler(replace(call, body=body))
                if not isinstance(reply, Mapping):  # it is not sliced
                    return reply
                answers.append(reply)
                await turn()
            return answers[0] if len(answers) == 1 else await self.large.beside(joined, call.key, answers)

        async with self.large.turns:
            return await self.answer(one_by_one, bodies[0], errors)

    async def _encoded(self, reply: Reply, errors: Counter[int]) -> Pieces:
        if reply is None:
            return None
        if isinstance(reply, Encoded):
            errors.update(reply.errors)
            return reply.pieces
        if is_large(reply, FEW_ELEMENTS):
            encoded, counted = await self.large.beside(_in_bytes, self.header.key, self.header.version, reply)
        else:
            encoded, counted = _in_bytes(self.header.key, self.header.version, reply)
        errors.update(counted)
        return [encoded]


def _in_slices(key: ApiKey, version: int, payload: memoryview) -> Sequence[Any]:
    return sliced(key, decode(key, version, payload, large=True))


def _in_bytes(key: ApiKey, version: int, answer: Answer) -> tuple[bytes, Counter[int]]:
    return encode(key, version, answer), errors_in(answer)
