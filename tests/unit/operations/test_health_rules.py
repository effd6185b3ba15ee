"""The doctor's rules: each trouble by itself is named by its rule and by no other, and says what to do."""

from dataclasses import replace

import pytest

from tidelog.check.store import StoreReport, Trial, TrialResult
from tidelog.groups.model import GroupView, StreamsGroup, StreamsMember
from tidelog.groups.topology import StreamsTopology, Subtopology
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.connector_health import ConnectorHealth, SlotHealth
from tidelog.operations.groups import GroupLag
from tidelog.operations.health import LakeFacts, TopicHealth, misfits
from tidelog.operations.health_rules import Level, examined, rules
from tidelog.operations.mirrors import MirrorStatus, TableStatus
from tidelog.operations.snapshots import LakeSnapshot, Space
from tidelog.retention.run_history import MaintenanceRun
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.open_parts import OpenTransaction

NOW_MS = 1_000_000_000
HOUR_MS = 3_600_000
GIB = 2**30
HEALTHY_RUN = MaintenanceRun("r", NOW_MS - 60_000, 100, ("merge",), whole=True, topics=1)
SNAPSHOT = LakeSnapshot(NOW_MS, topics={"orders": TopicState()})
WELL = LakeFacts(
    "file:///lake",
    NOW_MS,
    store=StoreReport("file:///lake", "", (Trial("it reads", TrialResult.HOLDS, "It did."),), {}, ()),
    space=Space(500 * GIB, 1000 * GIB),
    snapshot=SNAPSHOT,
    topics={"orders": TopicHealth(files=10, small=2, entries_since_checkpoint=100, checkpoint_interval=150)},
    groups={"billing": GroupLag(2, {"orders": 10}, NOW_MS - 1_000)},
    runs=(HEALTHY_RUN,),
)
MIRROR = MirrorStatus("s3://there", "run", NOW_MS - 1_000, tables={"a": TableStatus(7, 7)})


WAITING = StreamsGroup(
    "app",
    epoch=1,
    topology=StreamsTopology(1, (Subtopology("0", ("orders", "clicks")),)),
    members={"m": StreamsMember("m")},
)


def transaction(age_ms):
    return OpenTransaction(TransactionKey("copier", 7, 0, 3), NOW_MS - age_ms, {}, ())


def tried(result):
    return replace(WELL.store, trials=(Trial("of many one wins", result, "Two of them won."),))


def topic(**changed):
    return {"orders": replace(WELL.topics["orders"], **changed)}


ILL = {
    "store-unreachable": (replace(WELL, store=None, store_problem="No route."), "No route.", "credentials"),
    "store-dishonest": (replace(WELL, store=tried(TrialResult.FAILS)), "Two of them won.", "Stop all writers"),
    "store-doubtful": (replace(WELL, store=tried(TrialResult.WARNING)), "Two of them won.", "NTP"),
    "no-lake": (replace(WELL, lake_problem="There is no lake.", snapshot=None), "There is no lake.", "address"),
    "format-unknown": (replace(WELL, format_problem="Version 9.", snapshot=None), "Version 9.", "Install the tidelog"),
    "disk-full": (replace(WELL, space=Space(1 * GIB, 100 * GIB)), "1.0 GiB left", "retention"),
    "disk-nearly-full": (replace(WELL, space=Space(5 * GIB, 60 * GIB)), "5.0 GiB left", "retention"),
    "topic-broken": (replace(WELL, snapshot=replace(SNAPSHOT, broken={"bad": "A gap."})), "'bad'", "tidelog check bad"),
    "topic-config": (replace(WELL, topics=topic(config_problem="Two keys.")), "Two keys.", "topic alter orders"),
    "brokers-silent": (replace(WELL, silent_brokers={3: "10.0.0.7:9092: refused"}), "Broker 3", "its log"),
    "transaction-stuck": (
        replace(WELL, snapshot=replace(SNAPSHOT, open_transactions=(transaction(2 * HOUR_MS),))),
        "'copier' is open for 2 h",
        "tidelog transaction abort copier",
    ),
    "transactions-undone": (replace(WELL, snapshot=replace(SNAPSHOT, undone=2)), "2 transactions", "transaction list"),
    "maintenance-due": (
        replace(WELL, runs=(replace(HEALTHY_RUN, at_ms=NOW_MS - 3 * HOUR_MS),)),
        "3 h ago",
        "tidelog maintain --every 5m",
    ),
    "maintenance-failed": (
        replace(WELL, runs=(replace(HEALTHY_RUN, failures=("orders: A file is gone.", "b: c")),)),
        "A file is gone. (and 1 more)",
        "tidelog maintain",
    ),
    "small-files": (
        replace(WELL, topics=topic(files=6000, small=5000)),
        "5,000 small files",
        "maintain --topic orders",
    ),
    "checkpoint-late": (replace(WELL, topics=topic(entries_since_checkpoint=9_000)), "9,000 entries", "background"),
    "cut-costs": (
        replace(WELL, kept_cuts={"friday": 3 * GIB, "small": 1}),
        "'friday' is kept, and 3.0 GiB",
        "tidelog cut delete friday",
    ),
    "holds-abandoned": (replace(WELL, topics=topic(abandoned_holds=2)), "2 holds", "tidelog maintain"),
    "group-behind": (
        replace(WELL, groups={"billing": GroupLag(0, {"orders": 1_234}, NOW_MS - 8_000_000)}),
        "has no members and is 1,234 records behind, the oldest of 2 h",
        "group describe billing",
    ),
    "group-not-ready": (
        replace(WELL, snapshot=replace(SNAPSHOT, groups={"app": GroupView(WAITING)})),
        "streams group 'app' does not run: Source topics clicks are missing.",
        "Create the topics that it reads",
    ),
    "connector-failed": (
        replace(WELL, connectors={"shop": ConnectorHealth(1, failed={"task 0": "ConnectError: no publication"})}),
        "'shop' has failed (task 0): ConnectError: no publication",
        "/connectors/shop/restart",
    ),
    "connector-silent": (
        replace(WELL, connectors={"shop": ConnectorHealth(1, silent={"connector": "w:1", "task 0": "w:1"})}),
        "its worker w:1 is not heard of",
        "tidelog connect start",
    ),
    "connector-unassigned": (
        replace(WELL, connectors={"shop": ConnectorHealth(0, unassigned=("connector",))}),
        "No worker runs connector 'shop'",
        "tidelog connect start",
    ),
    "connector-retrying": (
        replace(WELL, connectors={"shop": ConnectorHealth(1, retrying={"task 0": "no route (7 tries)"})}),
        "(task 0) can't go on, and tries again: no route (7 tries)",
        "goes on by itself",
    ),
    "slot-inactive": (
        replace(WELL, slots=(SlotHealth("old", "db:5432/shop", "", active=False, held_bytes=2 * GIB),)),
        "slot old in db:5432/shop, of no connector of this lake, has no reader and keeps 2,048 MiB",
        "pg_drop_replication_slot('old')",
    ),
    "mirror-silent": (
        replace(WELL, follows="s3://there", mirror=replace(MIRROR, now_ms=NOW_MS - HOUR_MS)),
        "follows s3://there, and its mirror was last heard of 60 min ago",
        "tidelog mirror start",
    ),
    "mirror-problem": (
        replace(WELL, follows="s3://there", mirror=replace(MIRROR, tables={"a": TableStatus(7, 3, problem="A gap.")})),
        "a: A gap.",
        "mirror status",
    ),
    "mirror-behind": (
        replace(WELL, follows="s3://there", mirror=replace(MIRROR, behind_entries=1_200, behind_ms=2 * HOUR_MS)),
        "1,200 entries behind s3://there, the oldest of 2 h",
        "mirror status",
    ),
    "versions": (replace(WELL, misfits={"pandas": ("3.0.1", "<3")}), "pandas is 3.0.1", "pip install 'pandas<3'"),
}


def test_a_lake_that_is_well():
    assert examined(WELL) == []


def test_every_rule_has_a_row():
    assert set(ILL) == set(rules())


@pytest.mark.parametrize("rule", ILL)
def test_a_trouble_is_named_with_what_to_do(rule):
    facts, what, do = ILL[rule]
    (found,) = examined(facts)
    assert found.rule == rule
    assert what in found.what
    assert do in found.do


@pytest.mark.parametrize(
    "facts",
    [
        replace(WELL, snapshot=replace(SNAPSHOT, open_transactions=(transaction(HOUR_MS // 2),))),
        replace(WELL, space=Space(20 * GIB, 10_000 * GIB)),  # a small part of a large disk is much
        replace(WELL, space=None),
        replace(WELL, groups={"billing": GroupLag(0, {"orders": 0}, NOW_MS - 8_000_000)}),
        replace(WELL, topics=topic(entries_since_checkpoint=None)),
        replace(WELL, runs=(replace(HEALTHY_RUN, whole=False), HEALTHY_RUN)),
        replace(WELL, follows="s3://there", mirror=MIRROR),
        replace(WELL, slots=(SlotHealth("s", "db", "shop", active=True, held_bytes=2 * GIB),)),
        replace(WELL, slots=(SlotHealth("s", "db", "shop", active=False, held_bytes=1_000),)),
        replace(WELL, slots=(SlotHealth("s", "db", "shop", active=False, problem="away"),)),
    ],
)
def test_what_is_no_trouble(facts):
    assert examined(facts) == []


@pytest.mark.parametrize(
    ("mirror", "said"), [(None, "no mirror ever said"), (replace(MIRROR, ended=True), "was stopped 1 s ago")]
)
def test_a_lake_that_follows_without_a_mirror(mirror, said):
    (found,) = examined(replace(WELL, follows="s3://there", mirror=mirror))
    assert (found.rule, said in found.what) == ("mirror-silent", True)


def test_maintenance_of_some_topics_is_none_of_the_lake():
    (found,) = examined(replace(WELL, runs=(replace(HEALTHY_RUN, whole=False),)))
    assert found.rule == "maintenance-due"


def test_an_empty_lake_needs_no_maintenance():
    assert examined(replace(WELL, snapshot=LakeSnapshot(NOW_MS), topics={}, runs=())) == []


def test_cuts_that_hold_the_same_files_are_summed_once():
    held = {"friday": 3 * GIB, "saturday": 2 * GIB, "small": 1}
    (found,) = examined(replace(WELL, kept_cuts=held, kept_bytes=4 * GIB))
    assert "'friday' (3.0 GiB), 'saturday' (2.0 GiB)" in found.what
    assert "4.0 GiB of files in all" in found.what


def test_errors_come_first():
    both = replace(WELL, topics=topic(files=6000, small=5000), silent_brokers={1: "gone"})
    assert [one.level for one in examined(both)] == [Level.ERROR, Level.WARNING]


def test_packages_of_another_version():
    found = misfits(["pyarrow>=1", "numpy<1", "no-such-package==7", "orjson<1; extra == 'x'"])
    assert set(found) == {"numpy", "orjson"}
    assert found["numpy"][1] == "<1"


def test_a_group_that_is_behind_is_named_with_its_type_and_state():
    behind = {"app": GroupLag(1, {"orders": 5}, NOW_MS - 8_000_000)}
    ready = replace(WAITING, ready=True)
    facts = replace(WELL, groups=behind, snapshot=replace(SNAPSHOT, groups={"app": GroupView(ready)}))
    [finding] = examined(facts)
    assert "Group 'app' (streams, Assigning) has 1 member and" in finding.what
