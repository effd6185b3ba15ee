"""What the pages show of connectors is what the connectors take."""

import json

import pytest
from support.pages import blocks

from tidelog.connect.runtime.plugins import Plugins

PAGES = ("docs/connect.md", "docs/connect-connectors.md", "docs/connect-postgres.md")
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
