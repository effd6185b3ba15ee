"""Which maintainer is elected: the one that began first, for as long as its heartbeats go on."""

import logging

from support.logs import FakeClock

from tidelog.cli.broker.election import FOLDER, SILENT_MS, MaintainerElection
from tidelog.cli.broker.upkeep import is_due, log_report
from tidelog.log.base.clock import SystemIds
from tidelog.log.config.lake_file import Follows
from tidelog.log.lake import Lake
from tidelog.log.storage.memory import MemoryStorage
from tidelog.retention.merging import Shape
from tidelog.retention.report import MaintenanceReport, Merged, Retained, TopicReport


def test_the_first_one_is_elected_until_its_heartbeats_end():
    clock = FakeClock()
    storage = MemoryStorage("turns", clock)
    first = MaintainerElection(storage, clock, SystemIds())
    clock.sleep(1)
    second = MaintainerElection(storage, clock, SystemIds())
    first.show()
    second.show()
    assert [first.is_elected(), second.is_elected()] == [True, False]
    clock.sleep(SILENT_MS / 1000)
    assert not second.is_elected()
    clock.sleep(1)
    assert second.is_elected()
    assert [info.path for info in storage.list_after(FOLDER)] == [f"{FOLDER}/{second.name}"]


def test_a_turn_is_given_back_at_the_end():
    clock = FakeClock()
    storage = MemoryStorage("turns", clock)
    with MaintainerElection(storage, clock, SystemIds()) as first:
        clock.sleep(1)
        second = MaintainerElection(storage, clock, SystemIds())
        assert [first.is_elected(), second.is_elected()] == [True, False]
    assert second.is_elected()


def test_a_follower_is_its_mirrors_to_maintain():
    clock = FakeClock()
    with (
        Lake("memory://election-of-a-follower", clock=clock) as lake,
        MaintainerElection(lake.storage, clock, SystemIds()) as election,
    ):
        lake.ensure_lake()
        assert is_due(lake, election)
        lake.follow(Follows("memory://source"))
        assert not is_due(lake, election)


def test_what_a_run_did_is_in_the_log_and_what_was_not_due_is_not(caplog):
    """The process' module is __main__, whose lines no handler of tidelog's gets."""
    report = MaintenanceReport("r", "memory://log", 0, False)
    report.topics.append(
        TopicReport("orders", retention=Retained({}, 3, 100), merge=Merged(0, 0, Shape({}, 1), Shape({}, 1)))
    )
    with caplog.at_level(logging.INFO, "tidelog"):
        log_report(report)
    (line,) = caplog.records
    assert line.name.startswith("tidelog.")
    assert line.getMessage() == "Maintained: topic=orders part=retention: 3 segments of 100 bytes expired"
