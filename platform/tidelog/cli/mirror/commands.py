"""`tidelog mirror …`: a lake that follows another one, or copies topics and groups from Kafka."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from tidelog.cli.mirror.options import KafkaOptions, MirrorMetricsAt, bytes_per_s, kafka_servers
from tidelog.commands.declare import command, family
from tidelog.commands.failures import FAILED, UsageProblemError
from tidelog.commands.mirror_options import TwoLakes, topic_pattern
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, duration, number, print_json, say, size, table
from tidelog.log.base.extras import require
from tidelog.server.options import OtlpAt
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.mirror.kafka.kafka_mirror import KafkaMirror
    from tidelog.operations.mirrors import MirrorStatus, TableStatus


mirrors = family("Have a lake follow another one, and make it a lake of its own when that one is lost.")


@command(mirrors, "start", example="tidelog mirror start --from /data/lake --to s3://bucket/copy")
def start(
    call: Session,
    lakes: TwoLakes,
    kafka: KafkaOptions,
    topics: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Ship only topics whose whole name a regular expression matches. Groups, transactions, users and"
            " schemas are always shipped.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Ship what is there now, and end.")] = False,
    limit: Annotated[str | None, typer.Option(metavar="RATE", help="The most bytes a second: 500k, 20M, 1G.")] = None,
    discard_diverged: Annotated[
        bool,
        typer.Option(
            "--discard-diverged",
            help="Cut off what the follower has and the source hasn't. Without it such tables are named, not shipped.",
        ),
    ] = False,
    metrics: MirrorMetricsAt = None,
    otlp: OtlpAt = None,
) -> None:
    """Ship a lake's entries and files to another place, where offsets, groups and transactions are the same.

    The follower refuses every other writer. It may be stopped and started anywhere. Exit code 1 when it ends with
    tables that are not shipped.
    """
    if kafka_servers(lakes.source) is not None:
        require_none({"--discard-diverged": discard_diverged, "--from-option": lakes.from_option})
        copy_from_kafka(call, lakes, kafka, topic_pattern(topics), once, bytes_per_s(limit), metrics, otlp)
        return
    kafka.require_none()
    _follow(call, lakes, topics, once, limit, discard_diverged, metrics, otlp)


def _follow(
    call: Session,
    lakes: TwoLakes,
    topics: str | None,
    once: bool,
    limit: str | None,
    discard_diverged: bool,
    metrics: str | None,
    otlp: str | None,
) -> None:
    """Have a lake follow another one until stopped, or ship what is there now."""
    from tidelog.cli.mirror.shipping import ship
    from tidelog.mirror.follower_setup import adopt
    from tidelog.mirror.lease import FollowerLease
    from tidelog.mirror.mirror import Mirror
    from tidelog.operations.mirrors import described

    wanted, rate = topic_pattern(topics), bytes_per_s(limit)
    with lakes.open_source(call) as source, lakes.open_follower(call) as follower:
        adopt(source, follower)
        with FollowerLease(follower.storage, follower.clock, follower.ids.new()) as lease:
            mirror = Mirror(source, follower, wanted=wanted, bytes_per_s=rate, discard=discard_diverged, lease=lease)

            def ship_once(stop: Stop) -> None:
                while not (mirror.round().whole or mirror.problems or stop.asked):  # the source goes on meanwhile
                    pass

            sentence = "" if call.as_json else f"{follower.uri} follows {source.uri}"
            stop = ship(call, follower, mirror, sentence, metrics, otlp, ship_once if once else None)
            status, cut = mirror.status(ended=True), mirror.discarded
    if once and call.as_json:
        print_json(described(status, status.now_ms) | {"discarded": [one.to_json() for one in cut]})
    elif once:
        say(f"{status.shipped_entries} entries and {status.shipped_bytes} bytes of files were shipped.")
    for name, why in mirror.problems.items():
        say(why if name in {one.table for one in mirror.diverged} else f"'{name}' is not shipped. {why}", stderr=True)
    if mirror.problems:
        raise typer.Exit(FAILED)
    if stop.asked and once:
        raise typer.Exit(stop.exit_code)


@command(mirrors, "status", example="tidelog --lake s3://bucket/copy mirror status")
def status(
    call: Session,
    metrics: Annotated[bool, typer.Option("--metrics", help="Print it in Prometheus' text format.")] = False,
) -> None:
    """Show how far a follower, named by --lake, is behind its source: entries, bytes and seconds; what is not shipped.

    It is what the mirror said last: a mirror says something each second.
    """
    from tidelog.operations.mirrors import described, read_status

    with call.open_lake() as lake:
        mirror_status, follows, now_ms = read_status(lake.storage), lake.follows(), lake.clock.now_ms()
    if mirror_status is None:
        raise UsageProblemError(f"No mirror ever wrote to {lake.uri}: it is no follower ('tidelog mirror start').")
    if metrics:
        require("broker", "prometheus_client")
        from prometheus_client.utils import floatToGoString

        from tidelog.mirror.metrics import mirror_metrics
        from tidelog.server.process.metrics_text import rendered

        typer.echo(rendered(mirror_metrics(mirror_status, now_ms), floatToGoString).decode(), nl=False)
    elif call.as_json:
        print_json(described(mirror_status, now_ms) | {"follows": None if follows is None else follows.source})
    else:
        out = console()
        for line in status_lines(mirror_status, follows is not None, now_ms):
            out.print(line)


@command(mirrors, "promote", example="tidelog --lake s3://bucket/copy mirror promote --source-is-gone", changes=True)
def promote(
    call: Session,
    source_is_gone: Annotated[
        bool,
        typer.Option("--source-is-gone", help="The source does not answer: what was shipped of it counts."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where the follower is not whole: its tables are of different times.")
    ] = False,
    from_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="How to reach the source's store, beside --store-option. Repeatable."),
    ] = None,
) -> None:
    """Make a follower, named by --lake, a lake of its own that takes writes.

    Without --source-is-gone the source's writers are stopped first, what they wrote is shipped, and the source follows
    this lake from then on: nothing is lost.
    """
    from tidelog.commands.options import pairs
    from tidelog.log.base.errors import LakeNotFoundError, StorageError
    from tidelog.log.lake import Lake
    from tidelog.mirror.promotion import NotPromotedError
    from tidelog.mirror.promotion import promote as promoted

    options = call.store | pairs("--from-option", from_option or [])
    with Lake(call.named_lake(), create=False, options=call.store, may_change_follower=True) as follower:
        follows = follower.follows()
        if source_is_gone or follows is None:
            done = promoted(follower, None, force=force, said=_say)
        else:
            try:
                opened = Lake(follows.source, create=False, options=options)
            except (LakeNotFoundError, StorageError) as error:
                raise NotPromotedError(
                    f"The source can't be opened: {error} Where it is lost, promote without it: --source-is-gone."
                ) from error
            with opened as source:
                done = promoted(follower, source, force=force, said=_say)
    if call.as_json:
        print_json(done.to_json())
    else:
        lost = "nothing is lost" if done.in_order else "what its source got since the last whole round is not here"
        say(f"{follower.uri} is a lake of its own after {done.took_ms / 1000:.1f} s: {lost}.")


@command(mirrors, "compare", example="tidelog mirror compare --from /data/lake --to s3://bucket/copy")
def compare(call: Session, lakes: TwoLakes) -> None:
    """Compare two lakes at rest: every record and offset, groups, transactions. Exit code 1 where they differ."""
    from tidelog.mirror.comparison import differences

    with lakes.open_source(call) as source, lakes.open_follower(call, create=False) as follower:
        lines = list(differences(source, follower))
    if call.as_json:
        print_json({"differences": lines})
    else:
        for line in lines or ["The two lakes hold the same."]:
            say(line)
    if lines:
        raise typer.Exit(FAILED)


def _say(step: str) -> None:
    say(step, stderr=True)


def require_none(options: Mapping[str, object]) -> None:
    """Refuse options that mean nothing where the source is Kafka. Raises `UsageProblemError`."""
    given = [name for name, value in options.items() if value]
    if given:
        raise UsageProblemError(
            f"{' and '.join(given)} can't be given with kafka://…: sources that are lakes have them. Keys of Kafka's"
            " clients are given by --config; a topic here that is no copy is deleted by 'tidelog topic delete'."
        )


def copy_from_kafka(
    call: Session,
    lakes: TwoLakes,
    kafka: KafkaOptions,
    wanted: re.Pattern[str] | None,
    once: bool,
    bytes_per_s: float | None,
    metrics: str | None,
    otlp: str | None,
) -> None:
    """Copy until stopped, or what is there now. Raises `typer.Exit` when something is not copied."""
    require("kafka", "confluent_kafka")
    from tidelog.cli.mirror.shipping import ship
    from tidelog.mirror.kafka.client import ConfluentSource
    from tidelog.mirror.kafka.kafka_mirror import KafkaMirror

    with lakes.open_target(call) as lake:
        lake.ensure_lake()
        source = ConfluentSource(kafka_servers(lakes.source) or "", kafka.conf())
        mirror = KafkaMirror(source, lake, wanted=wanted, bytes_per_s=bytes_per_s)
        sentence = "" if once else f"{lake.uri} copies {source.address}"
        try:
            copy_once = (lambda stop: mirror.run_once(stop.within)) if once else None
            stop = ship(call, lake, mirror, sentence, metrics, otlp, copy_once)
        finally:
            source.close()
    _report(call, mirror, once)
    if mirror.problems or mirror.lost:
        raise typer.Exit(FAILED)
    if stop.asked and once:
        raise typer.Exit(stop.exit_code)


def _report(call: Session, mirror: "KafkaMirror", once: bool) -> None:
    from tidelog.operations.mirrors import described

    status = mirror.status(ended=True)
    if once and call.as_json:
        lost = [{"topic": t, "partition": p, "start": a, "end": b} for (t, p), (a, b) in sorted(mirror.lost.items())]
        told = {"problems": mirror.problems, "config_left_out": mirror.left_out, "lost": lost}
        print_json(described(status, status.now_ms) | told | {"offsets_of_groups": mirror.groups_committed})
        return
    if once:
        say(f"{mirror.records} records and {mirror.groups_committed} offsets of groups were copied.")
    for name, keys in mirror.left_out.items():
        for key, why in keys.items():
            say(f"Topic '{name}': {key} is not set here. {why}", stderr=True)
    for (name, partition), (start, end) in sorted(mirror.lost.items()):
        say(f"Topic '{name}', partition {partition}: offsets {start} to {end} were gone from the source.", stderr=True)
    for name, why in mirror.problems.items():
        say(why if name in why else f"'{name}' is not copied. {why}", stderr=True)


def status_lines(status: "MirrorStatus", follows: bool, now_ms: int) -> Iterator[RenderableType]:
    """The status for people, line by line."""
    from tidelog.operations.mirrors import lag_ms

    age = duration(max(0, now_ms - status.now_ms))
    state = "stopped" if status.ended else "last heard of"
    yield f"source {status.source}  mirror {state} {age} ago" + ("" if follows else "  promoted since")
    whole = "never" if status.whole_ms is None else f"{duration(max(0, now_ms - status.whole_ms))} ago"
    yield (
        f"behind by {number(status.behind_entries)} entries, {size(status.behind_bytes)},"
        f" {duration(lag_ms(status, now_ms))}  last the same in all tables {whole}"
    )
    if status.problem:
        yield status.problem
    rows = [
        (
            name,
            number(table_status.source),
            number(table_status.follower),
            _waiting(table_status, now_ms),
            table_status.problem,
        )
        for name, table_status in status.tables.items()
    ]
    yield table(("table", "source", "follower", "to be deleted", "not shipped because"), rows)


def _waiting(table_status: "TableStatus", now_ms: int) -> str:
    """The removed files that are still here, and when the last of them goes, as far as that is known."""
    if not table_status.waiting_bytes:
        return ""
    if table_status.waiting_until_ms is None:
        return str(size(table_status.waiting_bytes))
    return f"{size(table_status.waiting_bytes)} within {duration(max(0, table_status.waiting_until_ms - now_ms))}"
