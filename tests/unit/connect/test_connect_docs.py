"""What the pages show of connectors is what the connectors take."""

import json

import pytest
from support.connect_records import sink_record
from support.debezium_runs import KEPT
from support.pages import blocks

from tidelog.connect.connectors.delta_changes import change_of
from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.runtime.plugins import Plugins
from tidelog.connect.transforms.chain import apply_chain, chain_of

CHANGES = "docs/changes-to-tables.md"
PAGES = ("docs/connect.md", "docs/connect-connectors.md", "docs/connect-postgres.md", CHANGES)
SHOWN = [
    config
    for page in PAGES
    for block in blocks(page, "json")
    if "connector.class" in (config := json.loads(block.code))
]


@pytest.mark.parametrize("config", SHOWN, ids=lambda config: config["connector.class"])
def test_a_configuration_that_is_shown_is_valid(config):
    connector = Plugins().connector(config["connector.class"])
    assert {value.name: value.errors for value in connector.validate(config) if value.errors} == {}


def test_configurations_are_shown():
    assert len(SHOWN) >= 5


def without_places(value):
    """An envelope without what says where the change was, kept without the values of one run."""
    if value is None:
        return None
    kept = ("before", "after", "op")
    schema = {**value["schema"], "fields": [one for one in value["schema"]["fields"] if one["field"] in kept]}
    return {"schema": schema, "payload": {name: value["payload"][name] for name in kept}}


def test_what_the_page_about_changes_shows_makes_rows_of_debeziums_envelopes():
    """Each change as Debezium wrote it: its row by `after`, deletes and tombstones without one."""
    (config,) = (json.loads(block.code) for block in blocks(CHANGES, "json"))
    chain, names = chain_of(config), config["pk.fields"].split(",")
    kept = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    changes = [one for one in kept if one["topic"] == "shop.public.plain"]
    seen = set()
    for one in changes:
        (key_schema, key), (schema, value) = (
            JsonConverter().to_connect("t", json.dumps(side).encode() if side else None)
            for side in (one["key"], without_places(one["value"]))
        )
        record = sink_record(schema, value, key=key, key_schema=key_schema)
        op = value["op"] if value else None
        change = change_of(apply_chain(chain, record), names, keyed=True)
        assert change.key == {"id": key["id"]}
        assert change.values == (value["after"] if op in ("c", "r", "u") else None)
        seen.add(op)
    assert seen == {"c", "r", "u", "d", None}
