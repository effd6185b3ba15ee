"""A topic's `compression.type` wins over what producers pack by, in what is kept, stored and fetched; large records."""

import gzip
import random

import pyarrow.parquet as pq
import pytest
from support.broker_fetches import fetch
from support.broker_requests import Requests
from support.fetched import records_of
from support.logs import memory_lake
from support.produce_requests import GZIP, LZ4, NONE, SNAPPY, ZSTD, batch, encoded_produce
from support.record_batches import packed, record_of, varint

from tidelog.broker.fetch.segment_stream import LARGE_BYTES
from tidelog.broker.records.batches import CODECS, header_of
from tidelog.broker.wire.apis import ApiKey

FEW = [b"one", b"two " * 50]
MIB = 1024 * 1024


def lake_of(**config):
    lake = memory_lake()[0]
    lake.create_topic("t", 1, {key.replace("_", "."): value for key, value in config.items()})
    return lake


def produce(requests, records):
    (topic,) = requests.ask_encoded(ApiKey.PRODUCE, 9, encoded_produce(9, {"t": {0: records}})).responses
    (found,) = topic.partition_responses
    return int(found.error_code)


def fetched(requests, version=12):
    return fetch(requests, {"t": {0: {"fetch_offset": 0, "partition_max_bytes": 1 << 26}}}, version)["t", 0].records


def stored_codec(lake):
    (segment,) = lake.topic("t").state().live(0)
    with lake.storage.open(f"t/{segment.path}", segment.size) as source, pq.ParquetFile(source) as file:
        group = file.metadata.row_group(0)
        columns = [group.column(at) for at in range(group.num_columns)]
        return next(one.compression for one in columns if one.path_in_schema == "value")


@pytest.mark.parametrize(
    ("named", "codec", "stored"),
    [
        ("zstd", ZSTD, "ZSTD"),
        ("gzip", GZIP, "GZIP"),
        ("lz4", LZ4, "LZ4"),
        ("snappy", SNAPPY, "SNAPPY"),
        ("uncompressed", NONE, "UNCOMPRESSED"),
    ],
)
@pytest.mark.parametrize("sent", [NONE, GZIP, ZSTD])
def test_the_codec_that_a_topic_names_wins(named, codec, stored, sent):
    lake = lake_of(compression_type=named)
    with Requests(lake) as requests:
        assert produce(requests, batch(*FEW, codec=sent, headers=[("h", b"1")])) == 0
        kept = fetched(requests)
        assert [(header_of(kept).codec, r.value) for r in records_of(kept)] == [(codec, value) for value in FEW]
    assert stored_codec(lake) == stored
    with Requests(lake) as requests:  # nothing is in this one's memory
        read = fetched(requests)
        assert [(header_of(read).codec, r.value) for r in records_of(read)] == [(codec, value) for value in FEW]


@pytest.mark.parametrize("sent", range(5))
def test_a_topic_that_leaves_it_to_producers_gives_batches_as_they_came(sent):
    lake = lake_of(compression_type="producer")
    with Requests(lake) as requests:
        produced = batch(*FEW, codec=sent)
        assert produce(requests, produced) == 0
        assert fetched(requests)[16:] == produced[16:]


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([b"wind " * 60] * 20, "LZ4"),
        ([random.Random(at).randbytes(300) for at in range(20)], "UNCOMPRESSED"),
        ([random.Random(0).randbytes(300)], "LZ4"),  # too few bytes to show it
    ],
    ids=["much smaller", "hardly smaller", "a small batch"],
)
def test_segments_of_batches_that_their_codec_made_hardly_smaller_have_none(values, stored):
    lake = lake_of()
    with Requests(lake) as requests:
        assert produce(requests, batch(*values, codec=LZ4)) == 0
        assert [(header_of(fetched(requests)).codec)] == [LZ4]
    assert stored_codec(lake) == stored


def test_idempotent_producers_and_append_time_are_as_without_a_codec():
    lake = lake_of(compression_type="zstd", message_timestamp_type="LogAppendTime")
    with Requests(lake) as requests:
        assert produce(requests, batch(*FEW, producer=(7, 0, 0))) == 0
        header = header_of(fetched(requests))
        assert (header.codec, header.producer_id, header.is_log_append_time) == (ZSTD, 7, True)
        assert produce(requests, batch(*FEW, producer=(7, 0, 2))) == 0


# --- large records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_large_record_is_sent_packed_as_it_came_by_a_broker_that_reads_it_from_its_segment(sent):
    """Consumers bound what they take from a broker by what it sends: plain, a small batch would pass no more."""
    lake, value = lake_of(), bytes(3 * LARGE_BYTES)
    with Requests(lake) as requests:
        assert produce(requests, batch(value, codec=sent)) == 0
    with Requests(lake) as requests:
        for version in (4, 12):
            found = fetched(requests, version)
            assert len(found) < LARGE_BYTES // 4
            # Zstandard says nothing of the producer: it is also the codec of what comes without one.
            assert header_of(found).codec == (GZIP if sent == ZSTD else sent)
            assert [r.value for r in records_of(found)] == [value]


def test_a_large_record_that_came_plain_is_sent_so():
    lake, value = lake_of(max_message_bytes=str(8 * MIB)), bytes(2 * LARGE_BYTES)
    with Requests(lake) as requests:
        assert produce(requests, batch(value)) == 0
    with Requests(lake) as requests:
        found = fetched(requests)
        assert (header_of(found).codec, [r.value for r in records_of(found)]) == (NONE, [value])


def bomb(value, headers=b"\0"):
    return packed(gzip.compress(record_of(0, value=varint(len(value)) + value, headers=headers)), GZIP, 1)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (batch(b"k" * 999, key=None), 0),
        (batch(b"k" * 1001, key=None), 10),
        (batch(b"k" * 600, key=b"k" * 500), 10),
        (batch(*[b"k" * 500] * 9), 0),  # of one record, not of all of them
        (batch(*[b"k" * 500] * 9, b"k" * 1001), 10),
        (batch(b"v", headers=[("h" * 500, b"h" * 600)]), 10),
        (batch(b"v", headers=[("h", b"h" * 300), ("i", None)] * 2), 0),
        (bomb(bytes(100_000)), 10),
    ],
    ids=["fits", "value", "key and value", "many", "one of many", "header", "headers fit", "packed"],
)
def test_a_record_is_bounded_by_its_size_unpacked(records, code):
    lake = lake_of(max_record_bytes="1000")
    with Requests(lake) as requests:
        assert produce(requests, batch(b"before")) == 0
        assert produce(requests, records) == code
        assert produce(requests, batch(b"after")) == 0
    found = [value for b in lake.topic("t").read(0) for value in b.column("value").to_pylist()]
    assert (len(found) > 2) is (code == 0)
    assert (found[0], found[-1]) == (b"before", b"after")


def test_by_default_no_record_is_larger_than_what_consumers_fetch_at_once():
    lake = lake_of()
    assert lake.topic("t").config().max_record_bytes == 50 * MIB
    with Requests(lake) as requests:
        assert produce(requests, bomb(bytes(50 * MIB + 1))) == 10
        assert produce(requests, bomb(bytes(40 * MIB))) == 0


def test_codecs_are_named_as_in_a_batch():
    assert (CODECS[GZIP], CODECS[SNAPPY], CODECS[LZ4], CODECS[ZSTD]) == ("gzip", "snappy", "lz4", "zstd")
