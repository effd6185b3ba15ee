"""Batches in an answer are of the leader's epoch, whichever they were encoded in: clients expect that none falls."""

from dataclasses import replace

import pytest
from support.broker_fetches import append, fetch
from support.broker_requests import Requests
from support.logs import memory_lake

from tidelog.broker.records.batches import of_epoch, split


@pytest.fixture
def requests():
    """A broker that is alone in its cluster, in epoch 0."""
    lake, *_ = memory_lake()
    lake.create_topic("t")
    with Requests(lake) as requests:
        requests.lake = lake
        yield requests


def begin_epoch(requests):
    """Another epoch of the cluster begins, as when a broker comes or goes."""
    context = requests.broker._context
    view = replace(context.cluster(), epoch=context.cluster().epoch + 1)
    object.__setattr__(context, "cluster", lambda: view)
    return view.epoch


def epochs(requests, offset):
    records = fetch(requests, {"t": {0: offset}}, 12)["t", 0].records
    return [header.leader_epoch for header, _ in split(records)]


def test_what_was_read_in_an_earlier_epoch_follows_what_is_read_now(requests):
    append(requests.lake, "t", b"0", b"1", b"2")
    append(requests.lake, "t", b"3", b"4")
    assert epochs(requests, 3) == [0]
    epoch = begin_epoch(requests)
    found = epochs(requests, 0)
    assert len(found) > 1
    assert set(found) == {epoch}


def test_batches_of_the_epoch_are_sent_as_they_are(requests):
    append(requests.lake, "t", b"0", b"1")
    sent = bytes(fetch(requests, {"t": {0: 0}}, 12)["t", 0].records)
    assert of_epoch([sent], 0)[0] is sent


def test_nothing_but_the_epoch_of_a_batch_changes(requests):
    append(requests.lake, "t", b"0", b"1")
    sent = bytes(fetch(requests, {"t": {0: 0}}, 12)["t", 0].records)
    (changed,) = of_epoch([sent], 7)
    assert split(changed)[0][0].leader_epoch == 7
    assert of_epoch([changed], 0) == [sent]
