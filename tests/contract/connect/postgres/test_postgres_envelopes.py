"""Records beside those of Debezium's own connector, recorded from a run of it over the same statements."""

import json
from pathlib import Path
from typing import Any

from support import debezium_runs
from support.postgres import Postgres
from support.postgres_sources import SourceRun, as_json, config_of, envelopes_of_changes, fresh_database

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "debezium_3_2_3.json").read_text(encoding="utf-8"))
# What no two runs have in common.
_OF_THE_RUN = {"ts_ms", "ts_us", "ts_ns", "lsn", "sequence", "txId", "db"}
# Columns that this Debezium leaves out (tsvector, since 3.4 a type of its own), or streams as null (name).
_OTHERWISE = {"tv", "na"}


def test_records_are_those_of_debezium(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, (HERE / "tables.sql").read_text(encoding="utf-8")) as name:
        run = SourceRun(config_of(postgres_server, name, topic_prefix="fulfil", skipped_operations="none"))
        run.until(lambda: len(run.records) == 5, "the copy is whole")
        # The statements after the copy, as for Debezium.
        postgres_server.run((HERE / "changes.sql").read_text(encoding="utf-8"), name)
        run.until(lambda: len(run.records) >= len(RECORDED["records"]), "all changes are read")
        run.task.stop()
    assert len(run.records) == len(RECORDED["records"])
    for number, (ours, theirs) in enumerate(zip(run.records, RECORDED["records"], strict=True)):
        key, value = as_json(ours)
        where = f"record {number} of {ours.topic}"
        assert ours.topic == theirs["topic"], where
        assert _whole(key) == _recorded(theirs, "key"), where
        assert _plain(_whole(value)) == _plain(_recorded(theirs, "value")), where


def test_records_are_those_of_debezium_in_connect(postgres_server: Postgres) -> None:
    """The envelopes that `make compat` has of Debezium's connector in Kafka's Connect, with its newer version."""
    with fresh_database(postgres_server) as name:
        found = debezium_runs.canonical(envelopes_of_changes(postgres_server, name))
    kept = debezium_runs.with_older_markers(debezium_runs.kept(name))
    assert [one["topic"] for one in found] == [one["topic"] for one in kept]
    for number, (ours, theirs) in enumerate(zip(found, kept, strict=True)):
        assert ours == theirs, f"record {number} of {ours['topic']}"


def _whole(document: Any) -> Any:
    return document and (document["schema"], document["payload"])


def _recorded(record: Any, part: str) -> Any:
    schema = record[f"{part}_schema"]
    return None if schema is None else (RECORDED["schemas"][schema], record[part])


def _plain(found: Any) -> Any:
    """Without what differs from run to run, and with long values as they were recorded."""
    if isinstance(found, dict):
        if found.get("field") in _OTHERWISE:
            return None
        pairs = found.items()
        return {name: None if name in _OF_THE_RUN else _plain(one) for name, one in pairs if name not in _OTHERWISE}
    if isinstance(found, (list, tuple)):
        return [plain for one in found if (plain := _plain(one)) is not None or one is None]
    if isinstance(found, str) and len(found) > 300:
        return {"repeated": found[:4], "length": len(found)}
    return found
