"""The settings of brokers: the page that lists them, and that each reaches the broker."""

from dataclasses import fields
from pathlib import Path

import pytest

from tidelog.broker.base.settings import PLACES, Bounds
from tidelog.cli.serving.configuration import VARIABLES, given_by_environment, settings_of
from tidelog.log.base.typed_values import Flag
from tidelog.log.config.broker_keys import DESCRIBED, OTHERS

ROOT = Path(__file__).parents[4]


def test_the_page_lists_each_setting_with_its_default_and_meaning():
    page = (ROOT / "docs/brokers.md").read_text()
    for keys in (DESCRIBED, OTHERS):
        assert "\n".join(f"| `{key.name}` | {key.usual} | {key.doc} |" for key in keys) in page


@pytest.mark.parametrize("key", DESCRIBED, ids=lambda key: key.name)
def test_each_setting_counts(key):
    text = {"group.consumer.assignors": "range", "group.consumer.migration.policy": "upgrade"}.get(
        key.name, "false" if isinstance(key.kind, Flag) else "4321"
    )
    (variable,) = (variable for variable, known in VARIABLES.items() if known is key)
    assert key.text(settings_of(given_by_environment({variable: text})).value(key.name)) == text != key.usual


def test_each_bound_is_a_setting():
    assert {name for group, name in PLACES.values() if group == "bounds"} == {field.name for field in fields(Bounds)}
