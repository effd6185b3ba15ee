"""Idempotent senders: programs that outlive the process that appends for them, and send a batch until it is there.

A process owns a group-commit engine, as a broker does. What a sender has in hand stays in the world when the process
dies; the next one sends the same records with the same sequences.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sim_history import TOPIC, Attempt
from sim_world import TROUBLED, App

from tidelog.log.base.errors import (
    ContendedLogError,
    DeliveryTimeoutError,
    OutcomeUnknownError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit.engine import GroupCommit, PendingEntry
from tidelog.log.group_commit.producer_sequences import Numbering
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.topic import Topic

NOT_NOW = (*TROUBLED, ContendedLogError, UnknownTopicError, TopicChangedError, OutcomeUnknownError)


@dataclass
class Sender:
    """A program outside: its numbering, and the batch that it has no answer for yet."""

    numbering: Numbering
    values: dict[int, list[str]] = field(default_factory=dict)
    batch: ProducerBatch | None = None
    acks: int = -1


def sender(app: App) -> None:
    """Send batch after batch through an engine of this process."""
    world = app.world
    own: Sender = world.senders.setdefault(app.name, Sender(Numbering(app.ids)))
    opened: list[Topic] = []

    def open_topic() -> Topic:
        topic = app.lake.topic(TOPIC)
        if not topic.id:
            raise UnknownTopicError("there is no topic at the moment")
        opened.append(topic)
        return topic

    engine = GroupCommit(open_topic, app.clock, app.ids)
    while not (world.ending and own.batch is None):
        app.pause_about(world.plan.pause_s)
        if own.batch is None:
            choose(app, own)
        attempt = Attempt(app.name, own.values, "all" if own.acks == -1 else "1", "", world.scheduler.now)
        world.history.attempts.append(attempt)
        entry = engine.begin(request(app, own, world.rng.choice([20.0, 90.0])))
        while not entry.is_done:
            app.pause(max(entry.due_s(), 0.001))
            entry.advance()
        error = entry.outcomes.errors.get(0)
        if error is None:
            landed(app, own, attempt, entry, opened[-1].id)
        else:
            refused(app, own, attempt, error)


def choose(app: App, own: Sender) -> None:
    """The next batch: records for one or two partitions."""
    rng, count = app.world.rng, app.until_it_answers(lambda: app.lake.topic(TOPIC)).known.partitions or 1
    partitions = sorted(rng.sample(range(count), k=2 if count > 1 and rng.random() < 0.3 else 1))
    own.values = {p: [app.world.value(app.name) for _ in range(rng.choice([1, 1, 3]))] for p in partitions}
    own.batch = own.numbering.batch({p: len(values) for p, values in own.values.items()})
    own.acks = rng.choice([-1, -1, 1])


def request(app: App, own: Sender, timeout_s: float) -> ProduceRequests:
    """The batch in hand."""
    rows = [(p, value) for p, values in own.values.items() for value in values]
    table = pa.table({"value": [value for _, value in rows]})
    chosen = np.array([p for p, _ in rows], np.int32)
    batches = {} if own.batch is None else {0: own.batch}
    return ProduceRequests(table, np.array([app.clock.elapsed_s() + timeout_s]), chosen, batches=batches, acks=own.acks)


def landed(app: App, own: Sender, attempt: Attempt, entry: PendingEntry, topic_id: str) -> None:
    """The batch is there."""
    attempt.life = topic_id
    if (entry.outcomes.offsets(sum(map(len, own.values.values()))) < 0).any():
        app.world.history.counts["sender repeated"] += 1
        attempt.life = ""  # it may have been another life's
        app.world.history.end(attempt, "unknown")
    else:
        app.world.history.end(attempt, "acked", entry.outcomes.ranges)
    own.numbering.landed({p: len(values) for p, values in own.values.items()})
    own.batch = None


def refused(app: App, own: Sender, attempt: Attempt, error: BaseException) -> None:
    """Send it again, or give it up."""
    history = app.world.history
    history.end(attempt, "unknown")
    if isinstance(error, DeliveryTimeoutError):
        history.counts["sender gave up"] += 1
        if app.world.rng.random() < 0.5:
            return  # and sends the same again
        own.numbering.bump_epoch()
        own.batch = None
    elif isinstance(error, UnknownPartitionError):
        own.batch = None  # the topic was created again with fewer
    elif not isinstance(error, NOT_NOW):
        history.violate(f"a sender's batch {own.values} was refused: {error!r}")
