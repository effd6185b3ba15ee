"""Kafka Streams over a broker, and tidelog.streams over the same lake: the same records must give the same tables."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from support.kafka_programs import streams
from support.streams_runs import FIRST_MS, JOINED_WITHIN_MS, Text, create, reading, send
from support.waiting import eventually

from tidelog.log.lake import Lake
from tidelog.streams import JoinWindows, SessionWindows, Streams, StreamsBuilder, TimeWindows

_LIMIT_S = 240.0
_GRACE = timedelta(days=1)
# Far beyond the grace: what closes the sessions before it.
_LAST = Text("closing", "closing", FIRST_MS + 3 * 24 * 3_600_000)
_DONE = "done"

Found = dict[str, str]


class Compared(NamedTuple):
    """A program of StreamsPrograms.java, and the same in tidelog's words, which writes to topic `here`."""

    program: str
    out: str
    records: Callable[[random.Random], dict[str, list[Text]]]
    build: Callable[[StreamsBuilder], None]


def _lines(rng: random.Random) -> dict[str, list[Text]]:
    words = ["the", "quick", "brown", "fox", "jumps", "over", "Lazy", "dogs"]
    return {
        "lines": [Text(None, " ".join(rng.choices(words, k=4)), FIRST_MS + number) for number in range(500)]
        + [Text(None, _DONE, _LAST.timestamp_ms)]
    }


def _counted(builder: StreamsBuilder) -> None:
    words = builder.stream("lines").flat_map_values(r"split(lower(value), '\\W+')").filter("value != ''")
    words.group_by("value").count().to_stream().map_values("string(value)").to("here")


def _views(rng: random.Random) -> dict[str, list[Text]]:
    users = [f"u{number}" for number in range(12)]
    profiles = [Text(user, rng.choice(["eu", "us", "asia"]), FIRST_MS - 1000) for user in users]
    views = [Text(rng.choice([*users, "stranger"]), "page", FIRST_MS + 200 * number) for number in range(400)]
    return {
        "profiles": [*profiles, Text(_DONE, _DONE, FIRST_MS - 1000)],
        "views": [*views, Text(_DONE, "page", FIRST_MS + 90_000)],
    }


def _viewed(builder: StreamsBuilder) -> None:
    views = builder.stream("views").join(builder.table("profiles"), "right_value")
    windows = TimeWindows.of_size_and_grace(timedelta(seconds=10), _GRACE)
    counts = views.group_by("value").windowed(windows).count()
    key = "concat(key.key, '@', unix_millis(key.window.start))"
    counts.to_stream().map(key, "string(value)").to("here")


def _sides(rng: random.Random) -> dict[str, list[Text]]:
    found = {
        side: [
            Text(f"k{rng.randrange(8)}", f"{side}{at}", FIRST_MS + 700 * at + rng.randrange(3000)) for at in range(150)
        ]
        for side in ("left", "right")
    }
    return {side: [*texts, Text(_DONE, side, FIRST_MS + 200_000)] for side, texts in found.items()}


def _joined(builder: StreamsBuilder) -> None:
    within = JoinWindows.of_time_difference_and_grace(timedelta(milliseconds=JOINED_WITHIN_MS), _GRACE)
    left, right = builder.stream("left"), builder.stream("right")
    left.join(right, "concat(left_value, '/', right_value)", within).map("concat(key, ':', value)", "value").to("here")


def _events(rng: random.Random) -> dict[str, list[Text]]:
    # Gaps that end a session, that don't, and one of exactly the sessions' gap.
    found, now = [], FIRST_MS
    for number in range(200):
        now += rng.choice([100, 2000, 5000, 5001, 9000])
        found.append(Text(f"k{rng.randrange(3)}", f"{number}", now))
    return {"events": [*found, _LAST, Text(_DONE, _DONE, _LAST.timestamp_ms)]}


def _in_sessions(builder: StreamsBuilder) -> None:
    sessions = SessionWindows.of_inactivity_gap_and_grace(timedelta(seconds=5), _GRACE)
    counts = builder.stream("events").group_by_key().windowed(sessions).count()
    key = "concat(key.key, '@', unix_millis(key.window.start), '/', unix_millis(key.window.end))"
    counts.to_stream().map(key, "string(value)").to("here")


COMPARED = (
    Compared("word-count", "counts", _lines, _counted),
    Compared("page-views", "regions", _views, _viewed),
    Compared("sensor-join", "joined", _sides, _joined),
    Compared("sessions", "sessions", _events, _in_sessions),
)


def compare(one: Compared, address: str, lake: Lake, folder: Path, spark: SparkSession) -> Found:
    """What both made of the same records: the newest value of each key, or of each key and window. Returns it."""
    records = one.records(random.Random(19))
    create(address, *records, one.out)
    create(address, "here")
    send(address, records)
    theirs = _by_kafka_streams(one, address, folder)
    builder = StreamsBuilder()
    one.build(builder)
    settings = {"application.id": "here", "lake": lake.uri, "spark.sql.shuffle.partitions": "2"}
    with Streams(builder.build(), settings, spark) as application:
        application.process_all_available()
    with reading(address, "here") as consumer:
        ours = _newest(consumer, {}, 2.0)
    if one.program == "sessions":  # what has not closed by the last record has no result here yet
        theirs = {key: value for key, value in theirs.items() if not key.startswith((_DONE, "closing"))}
    assert ours == theirs, f"{sorted(ours.items() ^ theirs.items())[:10]}"
    return ours


def _by_kafka_streams(one: Compared, address: str, folder: Path) -> Found:
    """The newest value of each key once what the last record gives is there."""
    found: Found = {}
    running = streams(one.program, address, f"theirs-{one.program}", folder, {"commit.interval.ms": 100})
    try:
        with reading(address, one.out) as consumer:
            what = f"'{_DONE}' in {one.out}"
            eventually(lambda: any(_DONE in key for key in _newest(consumer, found, 0.2)), what, _LIMIT_S)
            running.end()
            _newest(consumer, found, 2.0)
    finally:
        running.__exit__()
    return found


def _newest(consumer: Consumer, found: Found, patience_s: float) -> Found:
    """Reads on until nothing comes for a while."""
    while messages := consumer.consume(2000, patience_s):
        for message in messages:
            assert message.error() is None, message.error()
            key, value = message.key().decode(), message.value()
            if message.topic() == "joined":
                key = f"{key}:{value.decode()}"
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value.decode()
    return found
