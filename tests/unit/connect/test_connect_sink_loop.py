"""A sink's loop: offsets are committed after what they are of, whatever crashes between two steps."""

import pytest
from support.crashes import Crash

from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import TopicPartition
from tidelog.connect.data.errors import RetriableConnectError
from tidelog.connect.runtime.conversion import Conversion
from tidelog.connect.runtime.sink_loop import SinkLoop
from tidelog.connect.runtime.tolerance import ToleranceOperator, TolerancePolicy
from tidelog.connect.spi.sinks import SinkTask

PLACE, MOST = ("t", 0), 12


class World:
    """What survives a crash: the topic, the committed offset, and the other system. It crashes at a moment."""

    def __init__(self, moment):
        self.left = moment
        self.committed, self.rows, self.position = 0, [], 0

    def moment(self):
        self.left -= 1
        if self.left == 0:
            raise Crash


class TopicConsumer:
    """A consumer of one partition, four records at a time."""

    def __init__(self, world):
        self.world, self.at, self.paused = world, None, False

    def subscribe(self, topics, on_assign, on_revoke, on_lost):
        self.assigned, self.revoked = on_assign, on_revoke

    def assign(self, partitions):
        (one,) = partitions
        self.at = self.world.committed if one.offset < 0 else one.offset

    def consume(self, most, timeout):
        self.world.moment()
        if self.at is None:
            self.at = self.world.committed
            self.assigned(self, [TopicPartition(*PLACE)])
        found = [] if self.paused else list(range(self.at, min(MOST, self.at + 4)))
        self.at += len(found)
        return [Message(topic="t", partition=0, offset=n, value=str(n).encode(), timestamp=(1, n)) for n in found]

    def pause(self, partitions):
        self.paused = True

    def resume(self, partitions):
        self.paused = False

    def seek(self, partition):
        self.at = partition.offset

    def commit(self, offsets, asynchronous):
        self.world.moment()
        self.world.committed = offsets[0].offset
        self.world.moment()

    def close(self):
        self.revoked(self, [TopicPartition(*PLACE)])


class TableTask(SinkTask):
    """Writes rows when it flushes; with `keeps`, the offset after them goes with them, and is where it goes on."""

    def __init__(self, world, keeps):
        self.world, self.keeps, self.rows = world, keeps, []
        self.loop = None

    def start(self, config, context):
        raise AssertionError

    def open(self, partitions):
        if self.keeps:
            self.loop.seeks[PLACE] = self.world.position

    def put(self, records):
        self.world.moment()
        self.rows += [int(record.value) for record in records]

    def flush(self, offsets):
        self.world.moment()
        self.world.rows += self.rows
        self.world.position = offsets[PLACE]
        self.rows = []
        self.world.moment()


def loop_of(world, task, consumer):
    operator = ToleranceOperator(TolerancePolicy(), lambda _: False, lambda: 0.0, lambda: 0.5)
    config = {"key.converter": "string", "value.converter": "string"}
    loop = SinkLoop(
        task, consumer, Conversion(config, None, operator), operator, None, wait=lambda _: False, now_s=lambda: 0.0,
        commit_interval_s=0.0,
    )  # fmt: skip
    task.loop = loop
    loop.subscribe(["t"], "")
    return loop


def run(world, keeps):
    consumer = TopicConsumer(world)
    loop = loop_of(world, TableTask(world, keeps), consumer)
    while world.committed < MOST:
        loop.step()


def after_each_crash(keeps):
    """The rows after a crash at every moment, and another run."""
    for moment in range(1, 1000):
        world = World(moment)
        try:
            run(world, keeps)
        except Crash:
            world.left = 0
            run(world, keeps)
            yield moment, world
        else:
            assert moment > 15
            return


def test_a_sink_that_keeps_offsets_with_its_data_has_each_record_once():
    for moment, world in after_each_crash(keeps=True):
        assert world.rows == list(range(MOST)), moment


def test_another_one_has_each_record_at_least_once():
    repeated = 0
    for moment, world in after_each_crash(keeps=False):
        assert set(world.rows) == set(range(MOST)), moment
        repeated += len(world.rows) > MOST
    assert repeated


def test_a_busy_sink_gets_the_same_records_again_before_any_others():
    world = World(0)
    consumer, task = TopicConsumer(world), TableTask(world, keeps=False)
    loop, busy, seen = loop_of(world, task, consumer), [1, 1, 1], []
    put = task.put

    def refuse(records):
        seen.append([record.offset for record in records])
        if records and busy:
            busy.pop()
            raise RetriableConnectError("busy")
        put(records)

    task.put = refuse
    while world.committed < MOST:
        loop.step()
    assert seen[:4] == [[0, 1, 2, 3]] * 4
    assert world.rows == list(range(MOST))


@pytest.mark.parametrize("held", [2, 4])
def test_a_task_may_hold_offsets_back(held):
    world = World(0)
    task = TableTask(world, keeps=False)
    task.pre_commit = lambda offsets: {PLACE: held}
    loop = loop_of(world, task, TopicConsumer(world))
    loop.step()
    assert world.committed == held
