"""`tidelog transaction …`: list, describe, abort; `tidelog producer list`."""

from typing import Annotated

import typer

from tidelog.cli.topic.broken_topics import each_topic, tell_broken
from tidelog.commands.declare import command, family
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, say

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
    from tidelog.cli.transaction import views as transaction_views
    from tidelog.operations.transactions import read_transactions

    with call.open_lake() as opened:
        found, where = read_transactions(opened), opened.uri
    out = console()
    if call.as_json:
        print_json([transaction_views.transaction_json(shown, where) for shown in found])
    elif not out.is_terminal:
        for shown in found:
            say(shown.transactional.transactional_id)
    elif found:
        out.print(transaction_views.list_table(found, where))
    else:
        say("No transactional ids. One begins with its first init_transactions.")


@command(transactions, "describe", example="tidelog transaction describe copier-1")
def describe(
    call: Session,
    name: TransactionalId,
) -> None:
    """Show a transactional id: its producer, its state, and the partitions of a commit that is under way."""
    from tidelog.cli.transaction import views as transaction_views
    from tidelog.operations.transactions import describe_transaction

    with call.open_lake() as opened:
        shown, where, now_ms = describe_transaction(opened, name), opened.uri, opened.clock.now_ms()
    if call.as_json:
        print_json(transaction_views.transaction_json(shown, where))
    else:
        console().print(transaction_views.describe_table(shown, where, now_ms))


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
    from tidelog.cli.transaction import views as transaction_views
    from tidelog.log.rules.sequences import KnownProducer, known_producers

    with call.open_lake() as opened:

        def look(name: str) -> list[KnownProducer]:
            return known_producers(opened.topic(name).state())

        by_topic = {name: look(name) for name in topic} if topic else each_topic(opened.topics(), look)
    found = [(name, one) for name, known in by_topic.items() if isinstance(known, list) for one in known]
    out = console()
    if call.as_json:
        print_json(transaction_views.producers_json(found))
    elif found or not out.is_terminal:
        out.print(transaction_views.producers_table(found))
    else:
        say("No producers. One is remembered from its first record on, for producer.id.expiration.ms.")
    tell_broken(by_topic, as_json=call.as_json)
