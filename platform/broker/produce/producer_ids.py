"""InitProducerId: an idempotent producer gets its id. It costs no entry: ids are drawn by chance from 63 bits."""

from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.context import Context
from tidelog.log.state.producer_memory import MAX_PRODUCER_ID

_COORDINATOR_NOT_AVAILABLE = 15
_INVALID_REQUEST = 42


class ProducerIds:
    """Answers InitProducerId of producers without a transactional id.

    Whoever coordinates transactions answers the others. Until then they are told that no coordinator is there, as by a
    Kafka that has none yet.
    """

    def __init__(self, context: Context) -> None:
        self._ids = context.lake.ids

    async def __call__(self, call: Call) -> Reply:
        """Answer one request."""
        transactional_id = call.body.transactional_id
        if transactional_id is None:
            return answer(0, self.new(), 0)
        return answer(_COORDINATOR_NOT_AVAILABLE if transactional_id else _INVALID_REQUEST)

    def new(self) -> int:
        """An id that no other producer has."""
        return int(self._ids.new().replace("-", ""), 16) & MAX_PRODUCER_ID


def answer(error: int, producer_id: int = -1, epoch: int = -1) -> Reply:
    """The answer of InitProducerId."""
    return {"error_code": error, "producer_id": producer_id, "producer_epoch": epoch}
