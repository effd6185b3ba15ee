"""`tidelog perf produce|consume`: what the options of Kafka's performance tools mean together."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidelog.cli.perf import options
from tidelog.commands.declare import command, family
from tidelog.commands.failures import FAILED, UsageProblemError
from tidelog.commands.options import Session, pairs
from tidelog.commands.terminal import note, print_json
from tidelog.commands.views import counted
from tidelog.server.process.serving import metrics_served
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.cli.perf.measures import ConsumerTotal, ProducerTotal
    from tidelog.cli.perf.produce import PerfResult
    from tidelog.cli.perf.storage_calls import Meter, StorageCalls
    from tidelog.log.lake import Lake

_TRANSACTION_MS = 3000

perf = family("Measure the producer and the consumer as Kafka's kafka-*-perf-test do, and what storage is asked.")


@command(perf, "produce", example="tidelog perf produce --topic t --num-records 1000000 --record-size 100")
def produce(call: Session, asked: options.PerfProduceOptions) -> None:
    """Produce records as fast as they go, and print what kafka-producer-perf-test prints.

    A line each 5 s, and one at the end: records and MB a second, and how long records took from produce() to their
    acknowledgement. A topic that is missing is created if the lake allows it (auto.create.topics.enable).
    """
    if [asked.record_size is not None, asked.payload_file is not None, asked.payload_monotonic].count(True) != 1:
        raise UsageProblemError("Give exactly one of --record-size, --payload-file and --payload-monotonic.")
    if asked.warmup_records >= asked.num_records:
        raise UsageProblemError("--warmup-records leaves nothing to measure: give fewer than --num-records.")
    if not asked.throughput or math.isnan(asked.throughput):
        raise UsageProblemError("--throughput 0 never ends: give a rate, or -1 for none.")
    # The log and the client: heavy, and not needed for --help.
    from tidelog.cli.perf.produce import PerfProducer, ProduceRun, counting, letters, picked

    say = _say(call)
    conf = _conf(asked.producer_config, "--producer-props", [*(asked.producer_props or ()), *(asked.more or ())])
    transaction_ms = _in_transactions(conf, asked.transactional_id, asked.transaction_duration_ms)
    if asked.record_size is not None:
        values = letters(asked.record_size)
    elif asked.payload_file is not None:
        values = picked(_payloads(asked.payload_file, asked.payload_delimiter, say))
    else:
        values = counting()
    run = ProduceRun(asked, values, transaction_ms, conf)
    with Stop() as stop, _opened(call, asked) as (opened, meter):
        if asked.warmup_records:
            say(
                f"Warmup first {asked.warmup_records} records. Steady state results will print after the complete test"
                " summary."
            )
        done = _told(lambda: PerfProducer(opened, run, stop, say).work())
        calls = None if meter is None else meter.calls(done.total.records)
    _report_produced(call, asked.topic, done, calls, say)
    if stop.asked:
        raise typer.Exit(stop.exit_code)


@command(perf, "consume", example="tidelog perf consume --topic t --messages 1000000 --storage-calls")
def consume(call: Session, asked: options.PerfConsumeOptions) -> None:
    """Consume records as fast as they come, and print what kafka-consumer-perf-test prints."""
    # The log and the client: heavy, and not needed for --help.
    from tidelog.cli.perf.consume import PerfConsumer
    from tidelog.cli.perf.measures import check_pattern, consumer_header

    try:
        check_pattern(asked.date_format)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="--date-format") from None
    say = _say(call)
    conf = {
        "max.partition.fetch.bytes": str(asked.fetch_size),
        "auto.offset.reset": "latest" if asked.from_latest else "earliest",
        **_conf(asked.consumer_config, "", ()),
    }
    with Stop() as stop, _opened(call, asked) as (opened, meter):
        if not asked.hide_header:
            say(consumer_header(detailed=asked.show_detailed_stats))
        name = asked.group or f"perf-consumer-{int(opened.ids.fraction() * 100_000)}"
        work = PerfConsumer(opened, asked, name, conf, stop, say)
        done = _told(work.work)
        calls = None if meter is None else meter.calls(done.records)
    if call.as_json:
        print_json(
            {
                "topic": asked.topic,
                "group": name,
                **_consumer_json(done),
                **({"storage": calls.as_json()} if calls else {}),
            }
        )
    else:
        if not asked.show_detailed_stats:
            say(done.line(work.date))
        if calls:
            calls.print_lines()
    if stop.asked:
        raise typer.Exit(stop.exit_code)


@contextmanager
def _opened(
    call: Session, asked: options.PerfProduceOptions | options.PerfConsumeOptions
) -> "Iterator[tuple[Lake, Meter | None]]":
    """The lake that was named, its topic there, and what counts calls to its store where that is asked for."""
    count, prices = asked.storage_calls, asked.prices
    if prices is not None and not count:
        raise UsageProblemError("--prices goes with --storage-calls.")
    from tidelog.cli.perf.storage_calls import S3_STANDARD, Meter, read_prices
    from tidelog.log.lake import Lake
    from tidelog.log.storage.counting import CountingStorage
    from tidelog.log.storage.objects import ObjectStorage

    costs = S3_STANDARD if prices is None else read_prices(prices)
    with ExitStack() as stack:
        lake = stack.enter_context(call.open_lake())
        storage = lake.storage if isinstance(lake.storage, ObjectStorage) else CountingStorage(lake.storage)
        real = storage is lake.storage
        if count and not real:
            lake = stack.enter_context(Lake(lake.uri, create=False, storage=storage))
        lake.ensure_topic(asked.topic)
        if (served := stack.enter_context(metrics_served(asked.metrics, lake))) is not None:
            note(f"metrics at http://{served}/metrics")
        yield lake, Meter(storage.requests, costs, real=real) if count else None


def _report_produced(
    call: Session, topic: str, done: "PerfResult", calls: "StorageCalls | None", say: Callable[[str], None]
) -> None:
    """Print the result of a run. Ends the command as failed when records failed."""
    if call.as_json:
        parts: dict[str, Any] = {} if done.steady is None else {"steady": _producer_json(done.steady)}
        if calls:
            parts["storage"] = calls.as_json()
        print_json({"topic": topic, **_producer_json(done.total), "failed": done.failed, **parts})
    else:
        say(done.total.line())
        if done.steady is not None:
            say(done.steady.line())
        if calls:
            calls.print_lines()
    if done.failed:
        note(f"{counted(done.failed, 'record')} failed; the first: {done.error}")
        raise typer.Exit(FAILED)


def _say(call: Session) -> Callable[[str], None]:
    """What prints a line of Kafka's output; with --format json the document says it all."""
    return (lambda _: None) if call.as_json else (lambda line: typer.echo(line))


def _told(work: Callable[[], Any]) -> Any:
    """Do work with a client. Raises `UsageProblemError` for a configuration, the log's own error for the rest."""
    from tidelog.clients.values.errors import KafkaError, KafkaException
    from tidelog.log.base.errors import TidelogError

    try:
        return work()
    except KafkaException as e:
        if isinstance(e.__cause__, TidelogError):
            raise e.__cause__ from None
        error = e.args[0]
        if error.code() == KafkaError._INVALID_ARG:
            raise UsageProblemError(error.str()) from None
        raise TidelogError(error.str()) from None


def _in_transactions(conf: dict[str, str], given: str | None, duration_ms: int | None) -> int | None:
    """How long each transaction is open, None without any; puts the transactional id into `conf`."""
    if given is None and duration_ms is None and "transactional.id" not in conf:
        return None
    if given is not None:
        conf["transactional.id"] = given
    if "transactional.id" not in conf:
        from tidelog.log.base.clock import SystemIds

        conf["transactional.id"] = f"performance-producer-{SystemIds().new()}"
    return duration_ms or _TRANSACTION_MS


def _conf(file: Path | None, option: str, given: Sequence[str]) -> dict[str, str]:
    """Keys of a client's configuration: those of a properties file, then those of the command's line."""
    conf: dict[str, str] = {}
    if file is not None:
        lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
        conf = pairs(str(file), [line for line in lines if line and line[0] not in "#!"])
    conf.update(pairs(option, given))
    for name in ("bootstrap.servers", "metadata.broker.list", "lake"):
        if conf.pop(name, None) is not None:
            note(f"{name} is ignored: the lake is named by --lake.")
    return {name: value for name, value in conf.items() if not name.endswith((".serializer", ".deserializer"))}


def _payloads(file: Path, delimiter: str, say: Callable[[str], None]) -> list[bytes]:
    """The values that a text file holds."""
    say(f"Reading payloads from: {file.absolute()}")
    text = file.read_text(encoding="utf-8")
    if not text:
        raise UsageProblemError(f"{file} is empty: there is nothing to produce.")
    divider = "\n" if delimiter == "\\n" else delimiter
    if not divider:
        raise typer.BadParameter("an empty text divides nothing.", param_hint="--payload-delimiter")
    parts = text.split(divider)
    values = [part.encode() for part in (parts if parts[-1] else parts[:-1])]
    say(f"Number of messages read: {len(values)}")
    return values


def _producer_json(total: "ProducerTotal") -> dict[str, Any]:
    names = ("p50", "p95", "p99", "p99.9")
    return {
        "records": total.records,
        "bytes": total.bytes,
        "elapsed_ms": total.elapsed_ms,
        "records_per_s": _number(total.records_per_s),
        "mb_per_s": _number(total.mb_per_s),
        "latency_ms": {
            "avg": _number(total.latency_average),
            "max": total.latency_max,
            **dict(zip(names, total.latency_percentiles, strict=True)),
        },
    }


def _consumer_json(total: "ConsumerTotal") -> dict[str, Any]:
    exact = ("start_ms", "end_ms", "records", "bytes")
    measured = ("mb_per_s", "records_per_s", "rebalance_ms", "fetch_ms", "fetch_mb_per_s", "fetch_records_per_s")
    return {name: _number(getattr(total, name)) for name in (*exact, *measured)}


def _number(value: float) -> float | None:
    """A number that JSON has: a run too short to be measured has no rate."""
    return value if math.isfinite(value) else None
