"""A record's way, by property: what a Kafka client sends, every reader reads alike, from memory and from segments."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import records_way as way
from support.brokers import running_broker
from support.examples import one_in

from tidelog.log.lake import Lake

NAMES = (f"t{number}" for number in itertools.count())
# With a cache of no bytes, a broker reads all that it serves from segments.
CACHES = {"from memory": 1 << 27, "from segments": 0}


@pytest.fixture(scope="module", params=CACHES.values(), ids=CACHES.keys())
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, str]]:
    """A lake, and the address of its broker."""
    with (
        Lake(str(tmp_path_factory.mktemp("lake"))) as lake,
        running_broker(lake, cache_bytes=request.param) as address,
    ):
        yield lake, address


@one_in(3)
@given(codec=way.codecs, sent=st.lists(way.records, min_size=1, max_size=30))
def test_every_reader_reads_what_a_kafka_client_sent(
    served: tuple[Lake, str], codec: str, sent: list[way.Record]
) -> None:
    """Keys, values, nulls, headers, timestamps, offsets and order."""
    lake, address = served
    topic = next(NAMES)
    lake.create_topic(topic, way.PARTITIONS)
    way.send(address, topic, codec, sent)
    wanted = way.placed(sent)
    assert way.by_librdkafka(address, topic, len(sent)) == wanted
    assert way.by_aiokafka(address, topic, len(sent)) == wanted
    assert way.by_consumer(lake, topic, len(sent)) == wanted
    assert way.by_topic(lake, topic) == wanted
    assert way.by_deltalake(lake, topic) == wanted
