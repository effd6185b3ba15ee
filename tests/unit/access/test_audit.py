"""The audit: a line for each denial, repeats counted, and bounds to what clients can make it write."""

import json
import logging

import pytest
from support.logs import FakeClock

from tidelog.access.audit import AGAIN_AFTER_S, MOST_A_SECOND, MOST_KEPT, Audit, Requester
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource

ALICE = Requester("User:alice", "10.0.0.1", "SASL", "app")
DENY = Acl(
    AclResource.TOPIC, AclPattern.PREFIXED, "a", "User:alice", "*", AclOperation.ALL, AclPermission.DENY
)  # fmt: skip


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def lines():
    return []


@pytest.fixture
def audit(clock, lines):
    return Audit(clock, lambda line: lines.append(json.loads(line)))


def deny(audit, name="t", who=ALICE, by=None):
    audit.denied(who, "PRODUCE", AclOperation.WRITE, AclResource.TOPIC, name, by)


def test_a_denial_is_a_line_of_json(audit, clock, lines, caplog):
    caplog.set_level(logging.INFO, "tidelog.audit")
    deny(audit, "abc", by=DENY)
    assert lines == [
        {
            "time_ms": clock.ms, "event": "denied", "principal": "User:alice", "host": "10.0.0.1", "listener": "SASL",
            "client_id": "app", "api": "PRODUCE", "operation": "WRITE", "resource": "TOPIC", "name": "abc",
            "by": {
                "resource": "TOPIC", "pattern": "PREFIXED", "name": "a", "principal": "User:alice", "host": "*",
                "operation": "ALL", "permission": "DENY",
            },
        }
    ]  # fmt: skip
    assert [json.loads(record.getMessage()) for record in caplog.records] == lines


def test_a_denial_that_repeats_is_counted_and_written_again_later(audit, clock, lines):
    for _ in range(5):
        deny(audit)
    assert len(lines) == 1
    clock.seconds += AGAIN_AFTER_S
    deny(audit, "other")
    assert [(line["name"], line.get("again")) for line in lines] == [("t", None), ("t", 4), ("other", None)]
    deny(audit)
    assert len(lines) == 4


def test_what_is_only_counted_is_written_at_the_end(audit, lines):
    deny(audit)
    deny(audit)
    audit.close()
    assert [line.get("again") for line in lines] == [None, 1]


def test_names_that_a_client_makes_up_fill_no_disk(audit, clock, lines):
    for number in range(3 * MOST_A_SECOND):
        deny(audit, f"made up {number}")
    assert len(lines) == MOST_A_SECOND
    clock.seconds += 1
    deny(audit, "one more")
    assert lines[-1]["left_out"] == 2 * MOST_A_SECOND
    deny(audit, "and one")
    assert "left_out" not in lines[-1]


def test_what_is_kept_in_mind_is_bounded(audit, clock):
    for number in range(MOST_KEPT + 500):
        clock.seconds += 1 / MOST_A_SECOND / 4
        deny(audit, f"t{number}")
    assert len(audit._denials) <= MOST_KEPT


def test_changes_are_all_written(audit, lines):
    for number in range(2 * MOST_A_SECOND):
        audit.changed(ALICE, "CREATE_ACLS", {"added": [number]})
    assert [line["added"] for line in lines] == [[number] for number in range(2 * MOST_A_SECOND)]
    assert lines[0]["event"] == "changed"


def test_a_failed_login_is_a_line(audit, lines):
    for _ in range(3):
        audit.not_authenticated(ALICE, "SCRAM-SHA-512", "bob", "wrong credentials")
    assert [(line["event"], line["user"], line["mechanism"]) for line in lines] == [
        ("not authenticated", "bob", "SCRAM-SHA-512")
    ]


def test_names_of_any_length_take_no_more_than_a_line(audit, lines):
    long = "x" * 30_000
    deny(audit, long, Requester("User:alice", "10.0.0.1", "SASL", long))
    audit.not_authenticated(ALICE, "PLAIN", long, "wrong credentials")
    assert [len(json.dumps(line)) < 1_000 for line in lines] == [True, True]
