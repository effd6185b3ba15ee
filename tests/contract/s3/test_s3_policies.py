"""The policies of docs/object-stores.md: each lets its role do its work, and no more.

The server is our own: it decides each request by the policies, and reports a missing object only to roles that may
list.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from support.cli_calls import cli
from support.iam import Policies, documented
from support.logs import values
from support.small_s3 import SmallS3, small_s3

import tidelog
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StoragePermissionError
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.log.storage.options import StoreOptions

URI = "s3://company/data/lake"
NAMES = {"BUCKET": "company", "LAKE": "data/lake", "TOPIC": "orders"}
POLICIES = documented()


class World:
    """A lake with topics `orders` and `other`, of two segments each, and a role that does something there."""

    def __init__(self, server: SmallS3) -> None:
        self.server = server
        with self.open() as lake:
            for topic in ("orders", "other"):
                lake.create_topic(topic, config={"cleanup.policy": "delete"})
                for text in ("a", "b"):
                    lake.topic(topic).append(values(text))

    @property
    def conf(self) -> dict[str, str]:
        return {"lake": URI, **self.server.options}

    def open(self) -> Lake:
        return Lake(URI, options=self.server.options)

    def as_role(self, *policies: str) -> Policies:
        """From now on only what these policies allow is done."""
        granted = Policies([POLICIES[name] for name in policies], NAMES)
        self.server.permits = granted.permits
        return granted


@pytest.fixture
def world() -> Iterator[World]:
    with small_s3(now=lambda: datetime.now(UTC)) as server:
        yield World(server)


def read(world: World) -> None:
    """By the library, by a consumer that names its partitions, and as Spark's source does on the driver."""
    with world.open() as lake:
        handle = lake.topic("orders")
        assert [v for b in handle.read(0) for v in b.column("value").to_pylist()] == [b"a", b"b"]
    with tidelog.Consumer({**world.conf, "group.id": "g", "enable.auto.commit": "false"}) as consumer:
        consumer.assign([tidelog.TopicPartition("orders", 0, 0)])
        assert [m.value() for m in consumer.consume(2, 30)] == [b"a", b"b"]
    assert shared_lake(URI, StoreOptions(world.server.options)).topic("orders").state().partitions == 1


def write(world: World) -> None:
    """An idempotent producer, until the log has a checkpoint; the library; a large segment that is given up."""
    with tidelog.Producer({**world.conf, "enable.idempotence": "true"}) as producer:
        for _ in range(12):
            producer.produce("orders", b"c")
            assert producer.flush() == 0
    with world.open() as lake:
        lake.topic("orders").append(values("d"))
        give_up(lake)


def give_up(lake: Lake) -> None:
    """A large segment that is not finished: its parts are taken back."""
    with suppress(KeyError), lake.storage.create("orders/partition=0/0-given-up.parquet") as file:
        for _ in range(3):
            file.write(bytes(10 << 20))
        raise KeyError


def consume(world: World) -> None:
    """A group: it joins, commits, leaves."""
    conf = {**world.conf, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with tidelog.Consumer(conf) as consumer:
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        assert message is not None
        consumer.commit(message=message, asynchronous=False)


def transact(world: World) -> None:
    """What was read is written on and committed in one transaction."""
    conf = {**world.conf, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with tidelog.Producer({**world.conf, "transactional.id": "x"}) as producer, tidelog.Consumer(conf) as consumer:
        producer.init_transactions()
        consumer.subscribe(["orders"])
        message = consumer.poll(30)
        assert message is not None
        producer.begin_transaction()
        producer.produce("orders", message.value())
        place = tidelog.TopicPartition("orders", 0, message.offset() + 1)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata())
        producer.commit_transaction()


def maintain(world: World) -> None:
    """All of `tidelog maintain`, which merges here; a lake's configuration is changed; an upload is given up."""
    words = [word for name, value in world.server.options.items() for word in ("--store-option", f"{name}={value}")]
    result = cli("maintain", "--lake", URI, *words)
    assert result.exit_code == 0, result.output
    with world.open() as lake:
        assert len(lake.topic("orders").state().live(0)) == 1
        lake.alter_config({"num.partitions": "3"})
        give_up(lake)


def create(world: World) -> None:
    """A writer makes its own topic."""
    world.server.objects = {path: data for path, data in world.server.objects.items() if "/orders/" not in path}
    with world.open() as lake:
        lake.create_topic("orders")
        lake.topic("orders").append(values("a"))
        give_up(lake)


ROLES: dict[str, tuple[tuple[str, ...], tuple[Callable[[World], None], ...]]] = {
    "read": (("read-a-topic",), (read,)),
    "write": (("write-a-topic",), (write,)),
    "create": (("write-a-topic",), (create,)),
    "consume": (("read-a-topic", "consume-as-a-group"), (consume,)),
    "transact": (("write-a-topic", "consume-as-a-group", "use-transactions"), (transact, write)),
    "maintain": (("maintain",), (maintain,)),
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_can_do_its_work_and_needs_all_that_it_is_granted(world: World, role: str) -> None:
    policies, works = ROLES[role]
    granted = world.as_role(*policies)
    for work in works:
        work(world)
    assert granted.denied == []
    assert granted.unused == []


def append_to(topic: str) -> Callable[[World], object]:
    return lambda world: world.open().topic(topic).append(values("x"))


def commit_offsets(world: World) -> None:
    LoggedPositions(GroupLog(world.open())).publish("g", {"orders": {0: 1}})


REFUSED: dict[str, tuple[tuple[str, ...], Callable[[World], object]]] = {
    "a reader writes": (("read-a-topic",), append_to("orders")),
    "a reader reads another topic": (("read-a-topic",), lambda world: world.open().topic("other").state()),
    "a reader commits offsets": (("read-a-topic",), commit_offsets),
    "a writer writes to another topic": (("write-a-topic",), append_to("other")),
    "a writer deletes": (("write-a-topic",), lambda world: world.open().storage.delete("orders/_tidelog/probe")),
    "a writer alters the lake": (("write-a-topic",), lambda world: world.open().alter_config({"num.partitions": "3"})),
    "a member of a group writes to its topic": (("read-a-topic", "consume-as-a-group"), append_to("orders")),
    "who may do nothing opens the lake": ((), World.open),
}


@pytest.mark.parametrize("what", REFUSED)
def test_beyond_its_role_the_store_refuses_and_says_so(world: World, what: str) -> None:
    policies, attempt = REFUSED[what]
    before = dict(world.server.objects)
    granted = world.as_role(*policies)
    with pytest.raises(StoragePermissionError, match="Check the credentials of this process"):
        attempt(world)
    assert granted.denied
    # What a writer had put before its entry was refused belongs to no entry, and there is none.
    assert world.server.objects == before
