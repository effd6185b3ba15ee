"""docs/clients.md as the code would have it: its prose here, its tables from the clients' settings.

Run as a file it writes the page.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tidy_docs import _table
from tidy_repository import ROOT

from tidelog.clients.settings.common import CommonSettings, ConsumerSettings, ProducerSettings
from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.clients.settings.parsing import Key, keys_of

CLIENTS = "docs/clients.md"

_PAGE = """\
# Clients

`tidelog.Producer`, `tidelog.Consumer` and `tidelog.AdminClient` have the shape of confluent-kafka's classes: the same
methods, dicts of configuration, callbacks, `Message`, `TopicPartition`, `KafkaError` and `KafkaException`. A program
moves over by its import (`from tidelog import Producer`, `from tidelog.admin import AdminClient`) and its address:
modules, methods and the names of their arguments are those of confluent-kafka 2.16, share groups excepted. The tables
of keys on this page are made from the code by `.venv/bin/python tests/tidy/tidy_client_docs.py`; a test compares the
two, and another runs the examples.

## Produce

```python
import tidelog

LAKE = "/tmp/lake"  # or s3://bucket/lake ...; a lake is made where there is none


def delivered(error, message):
    if error is not None:
        print("lost:", error)


with tidelog.Producer({{"lake": LAKE, "client.id": "shop"}}) as producer:
    for number in range(100):
        producer.produce("sales", key=f"customer-{{number % 7}}", value=f"sale {{number}}", on_delivery=delivered)
        producer.poll(0)  # serves delivery callbacks
    producer.flush()
```

`produce` never waits: records queue up, one thread a topic merges what waits into a log entry, and a full queue raises
BufferError. `flush` waits for all, `len(producer)` says how many wait. `produce_table(topic, table)` takes an Arrow
table; its future gives the offsets; `produce_batch(topic, messages)` takes dicts as confluent-kafka's does, with
headers and timestamps, too. The producer is idempotent unless `acks`, `retries` or `max.in.flight` rule that out: what
is repeated after an unknown outcome is there once, in order.

With a `transactional.id` records of several topics, and the offsets of what they were made of, are committed together
or not at all:

```python
copier = tidelog.Producer({{"lake": LAKE, "transactional.id": "copier-1"}})
copier.init_transactions()
copier.begin_transaction()
copier.produce("sales", b"12.50", key=b"shop-2")
copier.commit_transaction()
copier.close()
```

`send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())` puts a
consumer's progress into it. Nobody sees records of an open transaction, so that readers never wait; delivery reports
come when a record is written, without its offset, which the commit gives. Errors say what to do: `fatal()` close the
producer, `txn_requires_abort()` call `abort_transaction`, `retriable()` call it again. `consumer_group_metadata()` is
as of the last poll: what was read before the group went on without the consumer is refused.

A program with dozens of clients opens the lake once and hands it to all: `lake = tidelog.Lake(LAKE)`, then
`Consumer({{"lake": lake, ...}})`. They read its logs together, which else each does for itself. A forked process opens
its own.

## Consume

```python
consumer = tidelog.Consumer({{"lake": LAKE, "group.id": "billing", "auto.offset.reset": "earliest"}})
consumer.subscribe(["sales"])
seen = []
while len(seen) < 100:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        raise tidelog.KafkaException(message.error())
    seen.append(message.value())
consumer.close()  # commits, and leaves the group
```

`for message in consumer` polls for ever, `consume(n)` gives lists, `consume_table(n)` Arrow tables. `assign` reads
partitions without sharing them. Members of a group agree through the lake's table `__consumer_offsets`, which anyone
can query with SQL; there is no coordinator to run. A member that is killed is out after its session timeout.
`group.instance.id` makes a static member, which may come back within it without a rebalance; of two consumers with one
id the later goes on, and the earlier gets `FENCED_INSTANCE_ID`, fatal, from every call: close it. What a member commits
after others took its partitions over is refused (`ILLEGAL_GENERATION`).

`SerializingProducer` and `DeserializingConsumer` take `key.serializer`, `value.serializer`, `key.deserializer` and
`value.deserializer`: functions of an object or bytes and a `SerializationContext`, or those of `tidelog.serialization`.
Each key has a form `….builder`, for what builds a serializer when its client begins (`SerializerBuilder`).

```python
import json
from tidelog.serialization import StringDeserializer, StringSerializer

to_bytes = {{"key.serializer": StringSerializer(), "value.serializer": lambda obj, ctx: json.dumps(obj).encode()}}
with tidelog.SerializingProducer({{"lake": LAKE, **to_bytes}}) as producer:
    producer.produce("stock", key="tea", value={{"left": 12}})

to_objects = {{"key.deserializer": StringDeserializer(), "value.deserializer": lambda data, ctx: json.loads(data)}}
start = {{"group.id": "shelves", "auto.offset.reset": "earliest"}}
with tidelog.DeserializingConsumer({{"lake": LAKE, **start, **to_objects}}) as reader:
    reader.subscribe(["stock"])
    message = reader.poll(30)
    print(message.key(), message.value()["left"])
```

## Statistics

With `stats_cb` and `statistics.interval.ms` a producer or a consumer tells of itself in librdkafka's JSON
([STATISTICS.md](https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md)), from inside `poll`, `consume`
and `flush`: queues, records and bytes by partition, offsets and lag, requests and how long they take. The lake stands
there as the one broker; a request is an entry with records (`Produce`), a read of what is followed (`Fetch`) or a
commit of offsets. What belongs to connections is 0. A producer has an id in each topic: `eos` has the first one's.

## With asyncio

`tidelog.aio` has `AIOProducer`, `AIOConsumer`, `AsyncSerializingProducer` and `AsyncDeserializingConsumer`, as
`confluent_kafka.aio`. `await producer.produce(...)` queues a record, once there is room, and gives a future of the
delivered message; every other method is a coroutine. Callbacks may be coroutine functions, run in the loop, and may
await the client's methods. A `poll` that is cancelled loses no record: the next call gets it.

```python
import asyncio

from tidelog.aio import AIOConsumer, AIOProducer


async def main():
    async with AIOProducer({{"lake": LAKE}}) as producer:
        futures = [await producer.produce("clicks", f"click {{number}}") for number in range(100)]
        delivered = await asyncio.gather(*futures)
    async with AIOConsumer({{"lake": LAKE, "group.id": "counters", "auto.offset.reset": "earliest"}}) as consumer:
        await consumer.subscribe(["clicks"])
        messages = await consumer.consume(100, timeout=30)
    print(len(delivered), len(messages))


asyncio.run(main())
```

## Administrate

```python
from tidelog.admin import AdminClient, ConsumerGroupTopicPartitions, NewTopic

with AdminClient({{"lake": LAKE}}) as admin:
    for topic, future in admin.create_topics([NewTopic("refunds", num_partitions=3)]).items():
        future.result()  # raises KafkaException
    print(sorted(admin.list_topics().topics))
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")])["billing"].result()
    print([(p.topic, p.partition, p.offset) for p in found.topic_partitions])
```

Methods answer with futures as confluent-kafka's do; `close` and the context manager are additions. To programs that
look for brokers a lake is one, number 0. Offsets of a group are altered, and a group is deleted, only while it has no
members; members that show no life are put out first, which takes a session timeout. A replication factor above 1,
access rules, SCRAM passwords and elections are refused by their futures, with the reason. On the command line:
`tidelog group list|describe|reset-offsets|delete|delete-offsets`, and `tidelog consume --group`.

## Configuration

Names, types, ranges and defaults are librdkafka's, the Java client's names are aliases, and values may be texts. The
lake stands under `lake` or `bootstrap.servers`, else in the environment's `TIDELOG_LAKE`. A key is supported, ignored
with a warning for each client that is given it (logged to `logger`, else `tidelog.clients`), or refused with its
reason. An unknown key is refused with the nearest known one named, and so are keys that contradict one another. A key
of the other client is checked and ignored, as in librdkafka. How an object store is reached, `lake.s3.endpoint` and
others, stands among a client's keys too: see [configuration.md](configuration.md#a-lakes-store).

### Every client

{common}

### Producer

{producer}

### Consumer

{consumer}

### Ignored

{ignored}

### Refused

{refused}
"""


def clients_page() -> str:
    """Return docs/clients.md as the code would have it."""
    head = ("key", "other names", "default", "takes", "meaning")
    common = set(keys_of(CommonSettings))
    return _PAGE.format(
        common=_table(head, _rows(CommonSettings, set())),
        producer=_table(head, _rows(ProducerSettings, common)),
        consumer=_table(head, _rows(ConsumerSettings, common)),
        ignored=_table(("keys", "why they do nothing"), _by_reason(IGNORED.items())),
        refused=_table(
            ("keys", "why"),
            _by_reason(
                [*REFUSED.items(), *((name, f"producer: {why}") for name, why in REFUSED_FOR_PRODUCERS.items())]
            ),
        ),
    )


def _rows(settings: type[Any], without: set[str]) -> list[tuple[str, ...]]:
    defaults = {field.name: field.default for field in fields(settings)}
    found = [(key, defaults[field]) for field, key in keys_of(settings).items() if field not in without]
    return [
        (
            f"`{key.name}`",
            ", ".join(f"`{alias}`" for alias in key.aliases),
            _default(key, default),
            key.kind.takes,
            key.doc,
        )
        for key, default in sorted(found, key=lambda row: row[0].name)
    ]


def _default(key: Key, default: Any) -> str:
    if key.unset:
        return key.unset
    if default is None:
        return ""
    if isinstance(default, tuple):
        default = ",".join(default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`".replace(".0`", "`")


def _by_reason(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, []).append(f"`{name}`")
    return [(", ".join(sorted(names)), reason) for reason, names in by_reason.items()]


if __name__ == "__main__":
    (ROOT / CLIENTS).write_text(clients_page(), encoding="utf-8")
