"""`tidelog mirror …` on lakes in memory."""

import json
import shutil

import pytest
from support.cli_calls import cli, lake_address
from support.logs import read, values

from tidelog.log.lake import Lake


def new_source() -> tuple[str, str]:
    source, follower = lake_address(), lake_address()
    with Lake(source) as lake:
        for name in ("orders", "payments"):
            lake.create_topic(name, 1)
            lake.topic(name).append(values("a", "b"))
    return source, follower


def test_start_once_ships_what_is_there_and_compare_finds_nothing() -> None:
    source, follower = new_source()
    done = cli("mirror", "start", "--from", source, "--to", follower, "--once")
    assert done.exit_code == 0
    assert "4 entries and" in done.stdout
    found = cli("mirror", "compare", "--from", source, "--to", follower)
    assert (found.exit_code, found.stdout.strip()) == (0, "The two lakes hold the same.")
    with Lake(source) as lake:
        lake.topic("orders").append(values("c"))
    found = cli("--format", "json", "mirror", "compare", "--from", source, "--to", follower)
    assert found.exit_code == 1
    (difference,) = json.loads(found.stdout)["differences"]
    assert difference.startswith("topic 'orders'")


def test_topics_and_the_limit_count() -> None:
    source, follower = new_source()
    assert cli("mirror", "start", "--from", source, "--to", follower, "--once", "--topics", "pay.*").exit_code == 0
    with Lake(follower) as lake:
        assert lake.topics() == ["payments"]
    for option, text in (("--topics", "("), ("--limit", "fast"), ("--limit", "0")):
        done = cli("mirror", "start", "--from", source, "--to", follower, "--once", option, text)
        assert done.exit_code == 2
        assert option in done.stderr


def test_a_follower_refuses_writers_and_shows_its_status() -> None:
    source, follower = new_source()
    cli("mirror", "start", "--from", source, "--to", follower, "--once")
    refused = cli("--lake", follower, "produce", "orders", stdin="c\n")
    assert refused.exit_code == 1
    assert f"follows {source}" in refused.stderr
    status = json.loads(cli("--lake", follower, "--format", "json", "mirror", "status").stdout)
    assert (status["follows"], status["behind_entries"], status["ended"]) == (source, 0, True)
    assert status["tables"]["orders"] | {"behind_bytes": 0} == {
        "source": 1,
        "follower": 1,
        "behind_bytes": 0,
        "problem": "",
        "waiting_bytes": 0,
        "waiting_until_ms": None,
    }
    assert "orders" in cli("--lake", follower, "mirror", "status").stdout
    metrics = cli("--lake", follower, "mirror", "status", "--metrics").stdout
    assert "tidelog_mirror_lag_entries 0.0" in metrics
    assert 'tidelog_mirror_table_stopped{table="orders"} 0.0' in metrics
    assert cli("--lake", source, "mirror", "status").exit_code == 2


def test_a_lost_source_is_replaced_and_what_diverged_is_named_and_cut_off() -> None:
    source, follower = new_source()
    cli("mirror", "start", "--from", source, "--to", follower, "--once")
    with Lake(source) as lake:
        lake.topic("orders").append(values("lost"))
    done = json.loads(cli("--lake", follower, "--format", "json", "mirror", "promote", "--source-is-gone").stdout)
    assert (done["source"], done["in_order"]) == (source, False)
    with Lake(follower) as lake:
        lake.topic("orders").append(values("new"))
    back = cli("mirror", "start", "--from", follower, "--to", source, "--once")
    assert back.exit_code == 1
    assert "'orders' has diverged at entry 2" in " ".join(back.stderr.split())
    assert "partition 0: offsets 2 to 2" in " ".join(back.stderr.split())
    assert cli("mirror", "start", "--from", follower, "--to", source, "--once", "--discard-diverged").exit_code == 0
    with Lake(source) as lake:
        assert read(lake, "orders") == ["a", "b", "new"]


def test_a_source_that_can_not_be_opened_has_a_way_out(tmp_path) -> None:
    source, follower = str(tmp_path / "source"), str(tmp_path / "follower")
    Lake(source).close()
    cli("mirror", "start", "--from", source, "--to", follower, "--once")
    shutil.rmtree(source)
    refused = cli("--lake", follower, "mirror", "promote")
    assert refused.exit_code == 1
    assert "--source-is-gone" in refused.stderr
    assert cli("--lake", follower, "mirror", "promote", "--source-is-gone").exit_code == 0


def test_kafka_is_no_lake_to_compare_with() -> None:
    refused = cli("mirror", "compare", "--from", "kafka://127.0.0.1:1", "--to", "memory://x")
    assert refused.exit_code == 2
    assert "only 'tidelog mirror start' takes kafka://" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("command", ["start", "compare"])
def test_both_lakes_are_named(command: str) -> None:
    assert cli("mirror", command, "--from", "memory://x").exit_code == 2
