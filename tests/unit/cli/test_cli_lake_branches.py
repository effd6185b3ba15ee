"""tidelog lake branch, branches and diff; `tidelog.Lake.branch`."""

import json

import pytest
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused

import tidelog
from tidelog.log.base.errors import StorageUnavailableError


@pytest.fixture
def lake():
    address = lake_address()
    with open_lake(address) as opened:
        opened.create_topic("orders")
        opened.topic("orders").append([{"key": b"k", "value": b"one"}])
    return address


def test_a_branch_is_made_listed_and_discarded(lake):
    branch = f"{lake}-what-if"
    assert done("lake", "branches", "--lake", lake).stdout == f"{lake} has no branches.\n"
    made = done("lake", "branch", lake, branch).stdout
    assert made.startswith(f"{branch} is a branch of {lake} after ")
    assert "1 table, 1 file of " in made
    assert made.endswith("of which 0 B passed this process.\n")
    (listed,) = answer("lake", "branches", "--lake", lake)
    assert (listed["lake"], listed["cut"], listed["state"]) == (branch, None, "whole")
    assert "whole" in done("lake", "branches", "--lake", lake).stdout
    assert answer("topic", "list", "--lake", branch) == answer("topic", "list", "--lake", lake)
    assert "already, and programs may write to it" in refused(1, "lake", "branch", lake, branch)
    assert done("lake", "branch", "--discard", branch).stdout.startswith(f"{branch} is discarded, ")
    assert answer("lake", "branches", "--lake", lake) == []
    assert "There is no lake" in refused(1, "topic", "list", "--lake", branch)


def test_a_branch_of_a_cut(lake):
    branch = f"{lake}-friday"
    done("cut", "create", "friday", "--lake", lake)
    open_lake(lake).topic("orders").append([{"value": b"two"}])
    made = answer("lake", "branch", lake, branch, "--at", "friday")
    assert (made["of"], made["cut"], made["files"], made["copied_bytes"]) == (lake, "friday", 1, 0)
    assert open_lake(branch).offsets("orders") == {0: (0, 1)}
    assert "There is no cut 'monday'" in refused(1, "lake", "branch", lake, f"{lake}-x", "--at", "monday")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Give the lake to branch"),
        (("a",), "Give the lake to branch"),
        (("a", "b", "--discard", "c"), "nothing beside it"),
        (("--discard", "c", "--at", "friday"), "nothing beside it"),
    ],
)
def test_what_is_missing_or_too_much_is_named(words, why):
    assert why in refused(2, "lake", "branch", *words)


# --- diff --------------------------------------------------------------------------------------------------


def test_equal_lakes_end_with_0_and_others_with_1(lake):
    branch = f"{lake}-diff"
    done("lake", "branch", lake, branch)
    assert done("lake", "diff", lake, branch).stdout == "The two lakes hold the same.\n"
    assert answer("lake", "diff", lake, branch)["differs"] is False
    open_lake(branch).topic("orders").append([{"key": b"k", "value": b"two", "headers": [("h", b"\x1b[2J")]}])
    open_lake(branch).alter_topic("orders", config={"retention.ms": "9"})
    open_lake(lake).create_topic("mine", 2)
    shown = cli("lake", "diff", lake, branch).stdout
    assert shown.splitlines() == [
        f"A  {lake}",
        f"B  {branch}",
        "topic mine: only in A",
        "topic orders: only in B 1 record",
        "  its configuration: retention.ms: the default in A, 9 in B",
        "  partition 0, offset 1: only in B",
        r"    B  k  two h=\x1b[2J",
    ]
    few = cli("lake", "diff", lake, branch, "--topic", "orders", "--show", "0")
    assert (few.exit_code, few.stdout.count("\n")) == (1, 4)


def test_differences_as_json_and_by_key(lake):
    branch = f"{lake}-json"
    done("lake", "branch", lake, branch)
    open_lake(branch).topic("orders").append([{"key": b"k", "value": b"two"}])
    found = json.loads(cli("lake", "diff", lake, branch, "--by-key", "--topic", "orders", "--format", "json").stdout)
    (topic,) = found["topics"]
    assert topic["keys"] == {"differs": 1}
    assert topic["first"] == [
        {
            "where": "differs",
            "partition": 0,
            "offset": None,
            "a": {"key": "k", "value": "one", "headers": []},
            "b": {"key": "k", "value": "two", "headers": []},
        }
    ]
    assert "is in neither of" in refused(1, "lake", "diff", lake, branch, "--topic", "nowhere")


# --- Python ------------------------------------------------------------------------------------------------


def test_a_branch_without_an_address_is_discarded_at_the_end(tmp_path):
    with tidelog.Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
        with lake.branch() as scratch:
            assert scratch.uri.startswith(f"{lake.uri}-branch-")
            scratch.topic("orders").append([{"value": b"tried out"}])
            assert scratch.offsets("orders") == {0: (0, 1)}
            assert len(list(tmp_path.iterdir())) == 2
        assert lake.offsets("orders") == {0: (0, 0)}
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_branch_without_an_address_may_be_closed_again(tmp_path):
    with tidelog.Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
        with lake.branch() as scratch:
            scratch.close()
            assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_branch_that_can_not_be_closed_in_peace_is_discarded_all_the_same(tmp_path, monkeypatch):
    def fail(_):
        raise StorageUnavailableError("down")

    with tidelog.Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
        scratch = lake.branch()
        with monkeypatch.context() as patched:
            patched.setattr(tidelog.Lake, "close", fail)
            with pytest.raises(StorageUnavailableError, match="down"):
                scratch.close()
        assert [path.name for path in tmp_path.iterdir()] == ["lake"]
        scratch.close()


def test_a_branch_that_was_not_discarded_is_by_another_close(tmp_path, monkeypatch):
    def fail(*_):
        raise StorageUnavailableError("down")

    with tidelog.Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
        scratch = lake.branch()
        with monkeypatch.context() as patched:
            patched.setattr("tidelog.mirror.branch.discarding.discard_branch", fail)
            with pytest.raises(StorageUnavailableError, match="down"):
                scratch.close()
        scratch.close()
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_branch_with_an_address_stays(tmp_path):
    with tidelog.Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 1)
        lake.cut("friday")
        lake.create_topic("later", 1)
        with lake.branch(tmp_path / "what-if", at="friday") as branch:
            assert branch.topics() == ["orders"]
    with tidelog.Lake(tmp_path / "what-if", create=False) as branch:
        assert branch.topics() == ["orders"]
