"""Fetch requests of tests, to a broker over a lake in memory."""

from uuid import UUID

from tidelog.broker.wire.apis import OFFERED, ApiKey

VERSIONS = range(OFFERED[ApiKey.FETCH].first, OFFERED[ApiKey.FETCH].last + 1)
NEWEST = VERSIONS[-1]


def append(lake, topic, *values, partition=0, **columns):
    return lake.topic(topic).append([{"value": v, "partition": partition, **columns} for v in values])


def follow(requests, topic):
    """Have the broker look at a topic's log: in memory, nothing tells it that it grew."""
    topics = requests.broker._context.topics
    topics._followed[topic].log.refresh()
    topics._changed(topic)


def fetch(requests, topics, version=NEWEST, **fields):
    """{(topic, partition): its answer}. `topics`: {name or id: {partition: offset, or the fields of its request}}."""
    return {
        (getattr(t, "topic", None) or getattr(t, "topic_id", None), p.partition_index): p
        for t in whole(requests, topics, version, **fields).responses
        for p in t.partitions
    }


def whole(requests, topics, version=NEWEST, **fields):
    asked = [
        {
            ("topic_id" if isinstance(name, UUID) else "topic"): name,
            "partitions": [
                {"partition": p, "partition_max_bytes": 1 << 20}
                | (one if isinstance(one, dict) else {"fetch_offset": one})
                for p, one in partitions.items()
            ],
        }
        for name, partitions in topics.items()
    ]
    body = {"topics": asked, "max_bytes": 1 << 25, "min_bytes": 1, "session_epoch": -1, "replica_id": -1}
    return requests.ask(ApiKey.FETCH, version, body | fields)


def named(version, lake, topic):
    return UUID(lake.topic(topic).id) if version >= 13 else topic
