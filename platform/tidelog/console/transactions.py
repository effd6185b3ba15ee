"""Transactions that are open, or stuck, and the producers that partitions remember."""

from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import bad
from tidelog.log.rules.sequences import known_producers
from tidelog.operations.rights import Right
from tidelog.operations.transactions import TransactionSummary, read_transactions
from tidelog.transactions.model import State
from tidelog.transactions.transaction_log import TransactionLog

_MOST: Final = 1_000
_UNDECIDED: Final = (State.ONGOING, State.PREPARE_COMMIT)


def open_transactions(call: ConsoleCall) -> Any:
    """What is open of the transactional ids that the client sees; `stuck`: for longer than its timeout."""
    lake, now_ms = call.console.lake, call.console.lake.clock.now_ms()
    seen = [
        one
        for one in read_transactions(lake)
        if call.rights.may(Right.DESCRIBE_TRANSACTION, transactional_id=one.transactional.transactional_id)
    ]
    ids = [
        {
            "transactional_id": shown.transactional.transactional_id,
            "state": shown.state.value,
            "producer_id": shown.transactional.producer_id,
            "epoch": shown.transactional.kafka_epoch,
            "updated_ms": shown.transactional.updated_ms,
        }
        for shown in seen[:_MOST]
    ]
    return {
        "open": [transaction_row(one, now_ms) for one in seen if one.state in _UNDECIDED],
        "undone": sum(one.state is State.PREPARE_COMMIT for one in seen),
        "total": len(seen),
        "ids": ids,
    }


def transaction_row(shown: TransactionSummary, now_ms: int) -> dict[str, Any]:
    """One that is open. What it began at is None where nothing says that."""
    age_ms = None if shown.start_ms is None else max(0, now_ms - shown.start_ms)
    return {
        "transactional_id": shown.transactional.transactional_id,
        "producer_id": shown.transactional.producer_id,
        "state": shown.state.value,
        "began_ms": shown.start_ms,
        "age_s": None if age_ms is None else age_ms / 1000,
        "timeout_ms": shown.transactional.timeout_ms,
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in shown.partitions],
        "stuck": age_ms is not None and age_ms > shown.transactional.timeout_ms,
    }


def abort(call: ConsoleCall) -> Any:
    """Abort what a transactional id has open."""
    body = call.fields("transactional_id", "producer_id")
    name, producer_id = body.get("transactional_id"), body.get("producer_id")
    if not isinstance(name, str) or not (producer_id is None or type(producer_id) is int):
        raise bad("'transactional_id' must be a text, and 'producer_id' a whole number.")
    key = TransactionLog(call.console.lake).abort_open(name, producer_id)
    call.console.invalidate()
    return {"transactional_id": name, "producer_id": key.producer_id, "epoch": key.epoch, "number": key.number}


def producers(call: ConsoleCall) -> Any:
    """The producers of a topic, or of all that the client may read, as far as there is room in an answer."""
    wanted, snapshot = call.text("topic"), call.console.snapshot()
    if wanted:
        call.rights.require(Right.DESCRIBE_PRODUCERS, topic=wanted)
        states = {wanted: call.console.lake.topic(wanted).state()}
    else:
        states = {n: s for n, s in snapshot.topics.items() if call.rights.may(Right.DESCRIBE_PRODUCERS, topic=n)}
    rows: list[dict[str, Any]] = []
    total = 0
    for name, state in states.items():
        of_topic = known_producers(state)
        total += len(of_topic)
        rows += [
            {
                "topic": name,
                "partition": producer.partition,
                "producer_id": producer.producer_id,
                "epoch": producer.epoch,
                "last_sequence": producer.last_sequence,
                "last_ms": producer.updated_ms,
            }
            for producer in of_topic[: _MOST - len(rows)]
        ]
    return {"total": total, "producers": rows}
