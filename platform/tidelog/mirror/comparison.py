"""The checker of a mirror: two lakes compared, every record, offset, group position and transaction."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.topic import Topic
from tidelog.transactions.transaction_log import TransactionLog


def differences(source: Lake, follower: Lake) -> Iterator[str]:
    """What differs between two lakes at their heads, in words; nothing where they are equal.

    Both are read as any client reads them, and nothing is compared that a client can't see. Raises what reading does.
    """
    topics = {lake: [n for n in lake.topics(internal=True) if not names.is_table(n)] for lake in (source, follower)}
    for name in sorted(set(topics[source]) ^ set(topics[follower])):
        where = "follower" if name in topics[source] else "source"
        yield f"the {where} has no topic '{name}'"
    for name in sorted(set(topics[source]) & set(topics[follower])):
        yield from _of_topic(name, source, follower)
    yield from _of_mappings("group", GroupLog(source).views(), GroupLog(follower).views())
    transactions = ({one.transactional_id: one for one in TransactionLog(lake).all()} for lake in (source, follower))
    yield from _of_mappings("transactional id", *transactions)
    open_ones = ({one.key: one for one in TransactionLog(lake).all_open()} for lake in (source, follower))
    yield from _of_mappings("open transaction", *open_ones)


def _of_topic(name: str, source: Lake, follower: Lake) -> Iterator[str]:
    described = [lake.describe_topic(name) for lake in (source, follower)]
    if described[0] != described[1]:
        yield f"topic '{name}' is {described[0]} at the source, {described[1]} at the follower"
        return
    topics = [lake.topic(name) for lake in (source, follower)]
    for partition in topics[0].offsets():
        yield from _of_partition(name, partition, *topics)


def _of_partition(name: str, partition: int, source: Topic, follower: Topic) -> Iterator[str]:
    rows = (_rows(topic, partition) for topic in (source, follower))
    for ours, theirs in _paired(*rows):
        if ours != theirs:
            yield f"topic '{name}', partition {partition}: {ours} at the source, {theirs} at the follower"
            return


def _rows(topic: Topic, partition: int) -> Iterator[Mapping[str, Any]]:
    for batch in topic.read(partition, include_headers=True):
        yield from pa.Table.from_batches([batch]).to_pylist()


def _paired(ours: Iterator[Any], theirs: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    while True:
        pair = next(ours, None), next(theirs, None)
        if pair == (None, None):
            return
        yield pair


def _of_mappings(what: str, source: Mapping[Any, Any], follower: Mapping[Any, Any]) -> Iterator[str]:
    for key in [*source, *(key for key in follower if key not in source)]:
        ours, theirs = source.get(key), follower.get(key)
        if ours != theirs:
            yield f"{what} {key!r}: {ours} at the source, {theirs} at the follower"
