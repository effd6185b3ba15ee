"""`tidelog transaction …`: list, describe, abort; `tidelog producer list`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from tidelog.commands.declare import command, family
from tidelog.commands.failures import each_topic, tell_broken
from tidelog.commands.options import Session
from tidelog.commands.terminal import DASH, console, print_json, say, shown_or_dash, table

if TYPE_CHECKING:
    from tidelog.log.rules.sequences import KnownProducer
    from tidelog.operations.transactions import TransactionSummary

transactions = family("List and describe transactional ids, and abort what one has open.")
producers = family("List the idempotent producers of topics.")

TransactionalId = Annotated[str, typer.Argument(metavar="ID", help="The transactional id.", show_default=False)]


@command(transactions, "list", example="tidelog transaction list")
def list_transactions(
    call: Session,
) -> None:
    """List transactional ids and their states. A pipe gets the ids only, one a line.

    Ongoing is one whose transaction holds a group's offsets; what has only written records so far is not seen.
    """
    from tidelog.operations.transactions import read_transactions

    with call.open_lake() as opened:
        summaries, where = read_transactions(opened), opened.uri
    out = console()
    if call.as_json:
        print_json([transaction_json(shown, where) for shown in summaries])
    elif not out.is_terminal:
        for shown in summaries:
            say(shown.transactional.transactional_id)
    elif summaries:
        out.print(list_table(summaries, where))
    else:
        say("No transactional ids. One begins with its first init_transactions.")


@command(transactions, "describe", example="tidelog transaction describe copier-1")
def describe(
    call: Session,
    name: TransactionalId,
) -> None:
    """Show a transactional id: its producer, its state, and the partitions of a commit that is under way."""
    from tidelog.operations.transactions import describe_transaction

    with call.open_lake() as opened:
        shown, where, now_ms = describe_transaction(opened, name), opened.uri, opened.clock.now_ms()
    if call.as_json:
        print_json(transaction_json(shown, where))
    else:
        console().print(describe_table(shown, where, now_ms))


@command(transactions, "abort", example="tidelog transaction abort copier-1", changes=True)
def abort(
    call: Session,
    name: TransactionalId,
    producer_id: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Only while the id has this producer id.")
    ] = None,
) -> None:
    """Abort what a transactional id has open: its commit is refused from then on.

    One that is committed already is not aborted (exit code 1), and what comes after it is not touched.
    """
    from tidelog.transactions.transaction_log import TransactionLog

    with call.open_lake() as opened:
        key = TransactionLog(opened).abort_open(name, producer_id)
    if call.as_json:
        print_json({"transactional_id": name, "producer_id": key.producer_id, "epoch": key.epoch, "number": key.number})
    else:
        say(f"Aborted transaction {key.number} of '{name}', epoch {key.epoch}.")


@command(producers, "list", example="tidelog producer list --topic orders")
def list_producers(
    call: Session,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Only of this topic; may be repeated.")
    ] = None,
) -> None:
    """List the idempotent producers that partitions remember: their epoch, and the last sequence that landed.

    Of topics that can't be opened there are none to list; they are reported on stderr, and the exit code is 1.
    """
    from tidelog.log.rules.sequences import known_producers

    with call.open_lake() as opened:

        def look(name: str) -> "list[KnownProducer]":
            return known_producers(opened.topic(name).state())

        by_topic = {name: look(name) for name in topic} if topic else each_topic(opened.topics(), look)
    rows = [(name, one) for name, known in by_topic.items() if isinstance(known, list) for one in known]
    out = console()
    if call.as_json:
        print_json(producers_json(rows))
    elif rows or not out.is_terminal:
        out.print(producers_table(rows))
    else:
        say("No producers. One is remembered from its first record on, for producer.id.expiration.ms.")
    tell_broken(by_topic, as_json=call.as_json)


def list_table(summaries: "Iterable[TransactionSummary]", where: str) -> RenderableType:
    """A row for each transactional id."""
    return table(
        ["TRANSACTIONAL-ID", "COORDINATOR", ">PRODUCER-ID", "TRANSACTION-STATE"],
        [(s.transactional.transactional_id, where, str(s.transactional.producer_id), s.state.value) for s in summaries],
    )


def describe_table(shown: "TransactionSummary", where: str, now_ms: int) -> RenderableType:
    """One transactional id in a row."""
    transactional, start_ms = shown.transactional, shown.start_ms
    columns = ["COORDINATOR", "TRANSACTIONAL-ID", ">PRODUCER-ID", ">PRODUCER-EPOCH", "TRANSACTION-STATE"]
    return table(
        [*columns, ">TIMEOUT-MS", ">START-TIME-MS", ">DURATION-MS", "TOPIC-PARTITIONS"],
        [
            (
                where,
                transactional.transactional_id,
                str(transactional.producer_id),
                str(transactional.kafka_epoch),
                shown.state.value,
                str(transactional.timeout_ms),
                shown_or_dash(start_ms),
                shown_or_dash(None if start_ms is None else max(0, now_ms - start_ms)),
                ",".join(f"{topic}-{partition}" for topic, partition in shown.partitions) or DASH,
            )
        ],
    )


def transaction_json(shown: "TransactionSummary", where: str) -> dict[str, Any]:
    """The same as a document; None where the table has -. `epoch` is tidelog's own, which never falls."""
    transactional = shown.transactional
    return {
        "transactional_id": transactional.transactional_id,
        "coordinator": where,
        "producer_id": transactional.producer_id,
        "producer_epoch": transactional.kafka_epoch,
        "epoch": transactional.epoch,
        "number": transactional.number,
        "state": shown.state.value,
        "timeout_ms": transactional.timeout_ms,
        "start_time_ms": shown.start_ms,
        "update_time_ms": transactional.updated_ms,
        "topic_partitions": [{"topic": topic, "partition": partition} for topic, partition in shown.partitions],
    }


def producers_table(rows: "Iterable[tuple[str, KnownProducer]]") -> RenderableType:
    """A row for each producer of each partition."""
    columns = ["TOPIC", ">PARTITION", ">PRODUCER-ID", ">PRODUCER-EPOCH", ">LAST-SEQUENCE", ">LAST-TIMESTAMP"]
    return table(columns, [[topic, *(shown_or_dash(n) for n in _figures(one))] for topic, one in rows])


def producers_json(rows: "Iterable[tuple[str, KnownProducer]]") -> list[dict[str, Any]]:
    """The same as documents."""
    names = ("partition", "producer_id", "producer_epoch", "last_sequence", "last_timestamp_ms")
    return [{"topic": topic, **dict(zip(names, _figures(one), strict=True))} for topic, one in rows]


def _figures(one: "KnownProducer") -> tuple[int | None, ...]:
    return one.partition, one.producer_id, one.epoch, one.last_sequence, one.updated_ms
