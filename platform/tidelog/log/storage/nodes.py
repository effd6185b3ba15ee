"""The nodes of one replicated store, each with an address: which one is asked when another does not answer.

A store that keeps several copies answers at each of its nodes. A call goes to the node that answered last, and to the
next one where that gives no answer. What one node says is not there, another one is asked for: a node that has just
come back may miss what was stored while it was away.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from obstore import exceptions as obs
from obstore.store import ObjectStore

from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, Ids, SystemClock, SystemIds
from tidelog.log.storage.objects_errors import RAISED, gave_no_answer

# A node's client repeats nothing itself: the next node does. One that is frozen takes connections and says nothing.
NODE_RETRIES: Final = 0
CONNECT_TIMEOUT_MS: Final = 2_000
READ_TIMEOUT_MS: Final = 5_000
# After a round in which no node gave an answer.
_ROUND: Final = BackoffRule(0.1, 3.0, times=2.0, least=0.5, spread=0.5)

T = TypeVar("T")


class Nodes:
    """The stores of one store's nodes, at least one. All methods may be called from many threads at once.

    A process begins at a node by chance, so that many processes spread over all. `within_s`: how long after a call
    began the next node may still be asked. `at`: which one answered last.
    """

    def __init__(
        self, stores: Sequence[ObjectStore], within_s: float, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        self._stores = tuple(stores)
        self._within_s = within_s
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self.at = int(self._ids.fraction() * len(self._stores)) if len(self._stores) > 1 else 0

    @property
    def several(self) -> bool:
        """Whether there is a second node to ask."""
        return len(self._stores) > 1

    @property
    def current(self) -> ObjectStore:
        """The node that answered last."""
        return self._stores[self.at]

    def leave(self, node: ObjectStore) -> None:
        """Begin at the next node, as this one failed amid an upload, which can't go on elsewhere."""
        if self.several and self.current is node:
            self.at = (self.at + 1) % len(self._stores)

    def ask(self, call: Callable[[ObjectStore], T], *, writes: bool = False) -> T:
        """The first node's answer; that may be an error, such as that nothing is there.

        `writes`: where a node gave no answer, what another one refuses proves nothing, so the first error is raised.
        """
        if len(self._stores) == 1:
            return call(self._stores[0])
        return self._ask(call, self.at, writes=writes)

    def ask_two(self, call: Callable[[ObjectStore], T]) -> T:
        """A read's answer; where one node says that nothing is there, that of the next node which answers."""
        if len(self._stores) == 1:
            return call(self._stores[0])
        at = self.at
        try:
            return self._ask(call, at)
        except FileNotFoundError as absent:
            return self._second(call, absent)

    def all_of_two(self, call: Callable[[ObjectStore], T]) -> list[T]:
        """The answers of two nodes to a listing: one of them may miss what the other names."""
        first = self.ask(call)
        if not self.several:
            return [first]
        try:
            return [first, self._second(call, None)]
        except RAISED:
            return [first]

    def _second(self, call: Callable[[ObjectStore], T], absent: FileNotFoundError | None) -> T:
        """The answer of a node other than the current one. Raises `absent`, or the last error, where none answers."""
        error: BaseException | None = absent
        asked = self.at
        for step in range(1, len(self._stores)):
            try:
                return call(self._stores[(asked + step) % len(self._stores)])
            except RAISED as e:
                if not gave_no_answer(e):
                    raise
                error = error or e
        assert error is not None
        raise error

    def _ask(self, call: Callable[[ObjectStore], T], at: int, *, writes: bool = False) -> T:
        first: BaseException | None = None
        deadline = self._clock.elapsed_s() + self._within_s
        failed = 0
        while True:
            try:
                answer = call(self._stores[at])
            except RAISED as e:
                if not gave_no_answer(e):
                    if first is None or not writes or isinstance(e, obs.AlreadyExistsError):
                        self.at = at
                        raise
                    raise first from e
                first = first or e
            else:
                self.at = at
                return answer
            failed += 1
            at = (at + 1) % len(self._stores)
            if failed % len(self._stores) == 0:
                if self._clock.elapsed_s() > deadline:
                    raise first
                self._clock.sleep(_ROUND.pause_s(failed // len(self._stores), self._ids.fraction()))
