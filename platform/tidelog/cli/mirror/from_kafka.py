"""`tidelog mirror start --from kafka://…`: a lake that copies topics and groups from Kafka."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from tidelog.cli.mirror.options import KafkaOptions, kafka_servers
from tidelog.commands.failures import FAILED, UsageProblemError
from tidelog.commands.mirror_options import TwoLakes
from tidelog.commands.options import Session
from tidelog.commands.terminal import print_json, say
from tidelog.log.base.extras import require

if TYPE_CHECKING:
    from tidelog.mirror.kafka.kafka_mirror import KafkaMirror


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
            stop = ship(call, lake, mirror, sentence, metrics, copy_once)
        finally:
            source.close()
    _report(call, mirror, once)
    if mirror.problems or mirror.lost:
        raise typer.Exit(FAILED)
    if stop.asked and once:
        raise typer.Exit(stop.exit_code)


def _report(call: Session, mirror: "KafkaMirror", once: bool) -> None:
    from tidelog.cli.mirror.views import shown_status

    status = mirror.status(ended=True)
    if once and call.as_json:
        lost = [{"topic": t, "partition": p, "start": a, "end": b} for (t, p), (a, b) in sorted(mirror.lost.items())]
        told = {"problems": mirror.problems, "config_left_out": mirror.left_out, "lost": lost}
        print_json(shown_status(status, status.now_ms) | told | {"offsets_of_groups": mirror.groups_committed})
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
