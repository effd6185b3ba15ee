"""What processes do: write in several ways, read, open and close, administer. Each role is one actor's body.

An actor reports its requests and their answers. Any error that a role does not name ends the run.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from sim_history import TOPIC, Attempt, History, Ranges
from sim_world import CONFIG, TROUBLED, App

from tidelog.log.appends.appender import Appender
from tidelog.log.base.errors import (
    ContendedLogError,
    CorruptSegmentError,
    OffsetOutOfRangeError,
    OutcomeUnknownError,
    RequestForgottenError,
    TopicChangedError,
    TopicExistsError,
    UnknownTopicError,
)
from tidelog.log.door.commit_loop import FLOORS_EVERY_S
from tidelog.log.records.checks import to_records
from tidelog.log.rules.appends import Marker
from tidelog.log.topic import Topic

GONE = (TopicChangedError, UnknownTopicError)


# --- writing -----------------------------------------------------------------------------------------------


def writer(app: App) -> None:
    """Appends with all kinds of acks, and never repeats what failed."""
    topic = open_topic(app)
    while not app.world.ending:
        app.pause_about(app.world.plan.pause_s)
        for _ in range(app.world.rng.choice([1, 1, 1, 1, 4])):
            values = new_values(app, topic)
            acks = app.world.rng.choice(["all", "all", "1", "1", "0"])
            attempt = begin(app, topic, values, acks)
            if tell(app, attempt, partial(topic.append, table_of(values), acks=acks)) == "gone":
                topic = open_topic(app)


def command(app: App) -> None:
    """Appends once and ends, as a command does; the overdue upkeep is its own."""
    topic = open_topic(app)
    values = new_values(app, topic)
    attempt = begin(app, topic, values, "all")
    tell(app, attempt, Appender(TOPIC, lambda: topic, app.clock, app.ids).begin(table_of(values)).run)
    app.until_it_answers(app.lake.close)


def appender(app: App) -> None:
    """Goes on with a batch for as long as its outcome is unknown, and begins the next one then."""
    world, topic = app.world, open_topic(app)
    while not world.ending:
        app.pause_about(world.plan.pause_s)
        values = new_values(app, topic)
        attempt = begin(app, topic, values, world.rng.choice(["all", "1"]))
        own = Appender(TOPIC, lambda opened=topic: opened, app.clock, app.ids, retries=1)
        batch = own.begin(table_of(values), acks=attempt.acks)
        while (outcome := tell(app, attempt, batch.run)) == "unknown":
            app.pause_about(3.0)
        if outcome == "gone":
            topic = open_topic(app)


def job(app: App) -> None:
    """Appends numbered batches, and repeats one until it is acknowledged, crashes or not."""
    world, topic = app.world, open_topic(app)
    while not world.ending:
        app.pause_about(world.plan.pause_s * 2)
        values = {0: [f"job#{world.job_batch}"]}
        marker = Marker("job", world.job_batch, strict=True)
        attempt = begin(app, topic, values, "all")
        outcome = tell(app, attempt, partial(topic.append, table_of(values), marker=marker))
        if outcome in ("acked", "repeat"):
            world.job_batch += 1
        elif outcome == "gone":
            topic = open_topic(app)


def retrier(app: App) -> None:
    """Repeats a request under its id while its outcome is unknown."""
    world, topic = app.world, open_topic(app)
    while not world.ending:
        app.pause_about(world.plan.pause_s)
        try:
            staged = stage(app, topic, values := new_values(app, topic))
        except TROUBLED:
            continue
        request, acks = app.ids.new(), world.rng.choice(["all", "1"])
        attempt = begin(app, topic, values, acks)
        commit = partial(topic.commit, staged, acks=acks, request_id=request)
        for _ in range(6):
            outcome = tell(app, attempt, commit, repeated=True)
            if outcome != "unknown":
                break
            app.pause_about(3.0)
        if outcome == "gone":
            topic = open_topic(app)
        elif outcome == "acked":
            world.committed.append((attempt, staged, request))
        repeat(app, topic)


def repeat(app: App, topic: Topic) -> None:
    """Commit again what some process has committed: what it got first is what it gets, or it hears why it can't."""
    world = app.world
    if not world.committed or world.repeats.random() < 0.5:
        return
    attempt, staged, request = world.repeats.choice(world.committed)
    try:
        ranges = topic.commit(staged, acks=attempt.acks, request_id=request)
    except RequestForgottenError:
        world.history.counts["repeat forgotten"] += 1
    except (*TROUBLED, *GONE, ContendedLogError, OutcomeUnknownError):
        return
    else:
        world.history.counts["repeat answered"] += 1
        if ranges != attempt.ranges:
            world.history.violate(f"request {request} got {attempt.ranges} first, and {ranges} when it was repeated")


def new_values(app: App, topic: Topic) -> dict[int, list[str]]:
    """Records for one or two partitions."""
    rng, count = app.world.rng, topic.target().partitions
    partitions = rng.sample(range(count), k=2 if count > 1 and rng.random() < 0.3 else 1)
    return {p: [app.world.value(app.name) for _ in range(rng.choice([1, 1, 3]))] for p in sorted(partitions)}


def table_of(values: dict[int, list[str]]) -> pa.Table:
    """Records as `append` takes them."""
    rows = [(p, v) for p, vs in values.items() for v in vs]
    return pa.table({"value": [v for _, v in rows], "partition": pa.array([p for p, _ in rows], pa.int32())})


def stage(app: App, topic: Topic, values: dict[int, list[str]]) -> list:
    """Write segments that a later commit, and its repeats, name."""
    table = table_of(values)
    stager = topic.stager()
    stager.add(
        to_records(table, TOPIC, topic.config(), app.clock.now_ms()), np.asarray(table["partition"], dtype=np.int32)
    )
    return stager.finish()


def begin(app: App, topic: Topic, values: dict[int, list[str]], acks: str) -> Attempt:
    world = app.world
    attempt = Attempt(app.name, values, acks, topic.id, world.scheduler.now)
    world.history.attempts.append(attempt)
    return attempt


def tell(app: App, attempt: Attempt, call: Callable[[], Ranges], repeated: bool = False) -> str:
    """Make an append and note its answer: acked, repeat, unknown, forgotten, refused or gone (refused: no such topic).

    Forgotten: it is unknown, and will be.
    """
    history, actor = app.world.history, app.world.scheduler.current
    actor.interruptible = True
    try:
        ranges = call()
    except OutcomeUnknownError:
        history.counts["outcome unknown"] += 1
        outcome = "unknown"
    except KeyboardInterrupt:
        history.counts["interrupted"] += 1
        outcome = "unknown"
    except (*TROUBLED, ContendedLogError):
        outcome = "unknown" if repeated else "refused"
    except RequestForgottenError:
        history.end(attempt, "unknown")
        return "forgotten"
    except GONE:
        history.end(attempt, "refused")
        return "gone"
    else:
        outcome = "unknown" if attempt.acks == "0" else "acked" if ranges else "repeat"
        history.end(attempt, outcome, ranges or None)
        return outcome
    finally:
        actor.interruptible = False
    history.end(attempt, outcome)
    return outcome


def open_topic(app: App) -> Topic:
    """The topic, once it is there."""
    while True:
        topic = app.until_it_answers(lambda: app.lake.topic(TOPIC))
        if topic.id:
            return topic
        app.pause(1.0)


# --- reading -----------------------------------------------------------------------------------------------


class Position:
    """How far one reader has read one topic id; it begins `back` records before each end."""

    def __init__(self, topic: Topic, back: int) -> None:
        self.topic = topic
        self.back = back
        self.at: dict[int, int] = {}
        self.ends: dict[int, int] = {}


def reader(app: App) -> None:
    """Follows the topic; sometimes it looks away for a long time."""
    world = app.world
    position = Position(open_topic(app), world.rng.choice([0, 5, 10_000]))
    while True:
        last = world.ending
        position = look(app, position)
        if last:
            return
        app.pause_about(world.rng.choice([1.0, 1.0, 4.0, 30.0]))


def visitor(app: App) -> None:
    """Opens the lake, reads all there is, closes it."""
    position = Position(open_topic(app), app.world.rng.choice([5, 10_000]))
    look(app, position)
    app.until_it_answers(app.lake.close)


def look(app: App, position: Position) -> Position:
    """Read what is new. Returns where to go on: at the beginning when the topic was deleted."""
    topic, history = position.topic, app.world.history
    known = {p: (history.acked_starts[topic.id, p], history.acked_ends[topic.id, p]) for p in range(8)}
    deleted = topic.id in history.deleted_lives
    # A paused reader learns of its pause within this time of its own, and shows the past until then.
    behind = app.world.scheduler.now < app.process.paused_until + 2 * FLOORS_EVERY_S
    try:
        offsets = topic.offsets()
        if behind:
            return position
        if deleted:
            history.violate(f"life {topic.id} is deleted and still served")
        for partition, (start, end) in offsets.items():
            least_start, least_end = known[partition]
            if start < least_start or end < max(least_end, position.ends.get(partition, 0)):
                history.violate(
                    f"partition {partition} is [{start}, {end}), but was said to begin at {least_start} and to end at"
                    f" {least_end}, here at {position.ends.get(partition, 0)}"
                )
            position.ends[partition] = end
            read_on(app, position, partition, max(start, position.at.get(partition, end - position.back)), end)
    except GONE:
        history.counts["topic gone"] += 1
        return Position(open_topic(app), 10_000)
    except TROUBLED:
        pass
    return position


def read_on(app: App, position: Position, partition: int, start: int, end: int) -> None:
    """Read [start, end) and note every record."""
    topic, history, at = position.topic, app.world.history, start
    try:
        for batch in topic.read(partition, start, end):
            for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True):
                if not at <= offset <= _after_deleted(history, topic.id, partition, at):
                    history.violate(f"partition {partition}: offset {offset} was read where {at} was due")
                history.read(topic.id, partition, offset, value.decode())
                at = offset + 1
    except OffsetOutOfRangeError:
        history.counts["out of range"] += 1
        return  # the start has moved meanwhile; the next look begins there
    except CorruptSegmentError:
        history.lost.add((topic.id, partition, at))
        history.note(f"lost {partition} {at}")
        at = end
    if _after_deleted(history, topic.id, partition, at) < end:
        history.violate(f"partition {partition}: read to {at} of {end}")
    position.at[partition] = at


def _after_deleted(history: History, life: str, partition: int, at: int) -> int:
    """How far a read may go on from an offset at once: what is deleted while it is paused is missing in it."""
    return max(at, history.acked_starts[life, partition])


# --- administering -----------------------------------------------------------------------------------------


def admin(app: App) -> None:
    """Deletes records, adds partitions, deletes the topic and creates it again; leaves one behind."""
    world = app.world
    while not (world.ending and app.until_it_answers(lambda: app.lake.topic(TOPIC)).id):
        app.pause_about(1.0 if world.ending else 25.0)
        operation = world.rng.choice([delete_records, delete_records, add_partition, change_age, replace])
        try:
            if not app.lake.topic(TOPIC).id:
                operation = create
            operation(app)
        except (*TROUBLED, *GONE, OutcomeUnknownError, ContendedLogError, TopicExistsError, OffsetOutOfRangeError):
            world.history.counts["admin failed"] += 1


def create(app: App) -> None:
    """Create the topic."""
    config = dict(CONFIG)
    if app.world.plan.log_append_time:
        config["message.timestamp.type"] = "LogAppendTime"
    app.lake.create_topic(TOPIC, app.world.plan.partitions, config)
    app.world.history.note("created")


def delete_records(app: App) -> None:
    """Move the start of a partition."""
    history, topic = app.world.history, app.lake.topic(TOPIC)
    life = topic.id
    partition, (start, end) = app.world.rng.choice(sorted(topic.offsets().items()))
    before = app.world.rng.choice([-1, start, app.world.rng.randint(start, end)])
    for p, offset in app.lake.delete_records(TOPIC, {partition: before}).items():
        history.acked_starts[life, p] = max(history.acked_starts[life, p], offset)
        history.note(f"deleted {p} before {offset}")


def add_partition(app: App) -> None:
    """Grow the topic."""
    count = app.lake.describe_topic(TOPIC).partitions
    app.lake.alter_topic(TOPIC, partitions=min(len(count) + 1, 6))
    app.world.history.note("altered")


def change_age(app: App) -> None:
    """Keep entries longer, or no longer than before."""
    age = app.world.rng.choice(["10000", "40000"])
    app.lake.alter_topic(TOPIC, config={"log.min.age.ms": age})
    app.world.history.note(f"keeps entries {age} ms")


def replace(app: App) -> None:
    """Delete the topic and create it again."""
    life = app.lake.describe_topic(TOPIC).id
    app.lake.delete_topic(TOPIC)
    app.world.history.deleted_lives.add(life)
    app.world.history.note(f"deleted life {life}")
    app.pause_about(3.0)
    create(app)
