"""Assignors against Kafka's own: assignments that kafka-clients made of random groups, and what each of them covers.

The vectors hold groups of 1 to 40 members from random histories of joins, leaves, growing topics and changing
subscriptions; claims of one generation, some of them contested.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from tidelog.groups import ASSIGNORS, assign

CASES = json.loads((Path(__file__).parents[2] / "vectors/assignors.json").read_text(encoding="utf-8"))["cases"]


def listed(grouped):
    """`{"t": [0, 2]}` is `[("t", 0), ("t", 2)]`."""
    return sorted((topic, number) for topic, numbers in grouped.items() for number in numbers)


def by_member(grouped):
    return {member: listed(partitions) for member, partitions in grouped.items()}


def run(case):
    return assign(
        case["strategy"],
        case["subscriptions"],
        case["partitions"],
        by_member(case.get("owned", {})),
        case.get("static", {}),
    )


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_assignments_equal_kafkas(strategy):
    mine = [case for case in CASES if case["strategy"] == strategy]
    assert len(mine) > 40
    assert [case for case in mine if run(case) != by_member(case["assignment"])] == []


def traits(case):
    claims = Counter(part for member in case["subscriptions"] for part in listed(case.get("owned", {}).get(member, {})))
    equal = len({frozenset(topics) for topics in case["subscriptions"].values()}) == 1
    yield case["strategy"], "equal" if equal else "differing"
    if max(claims.values(), default=0) > 1:
        yield case["strategy"], "contested"
    if claims:
        yield case["strategy"], "owned"
    if case.get("static"):
        yield case["strategy"], "static"


def test_the_vectors_hold_what_can_go_wrong():
    covered = Counter(trait for case in CASES for trait in traits(case))
    sticky = [(name, trait) for name in ("sticky", "cooperative-sticky") for trait in ("owned", "contested")]
    every = [(name, trait) for name in ASSIGNORS for trait in ("equal", "differing")]
    static = [("range", "static"), ("roundrobin", "static")]
    assert [trait for trait in sticky + every + static if covered[trait] < 10] == []
