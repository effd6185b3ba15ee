"""The settings of brokers: the page that lists them, and that each reaches the broker."""

from dataclasses import fields
from pathlib import Path

import pytest

from tidelog.broker.base.setting_keys import OF_BROKERS, SETTINGS
from tidelog.broker.base.settings import Bounds
from tidelog.cli.broker.configuration import given_by_environment, settings_of
from tidelog.log.base.typed_values import Flag

ROOT = Path(__file__).parents[4]


def test_the_page_lists_each_setting_with_its_default_and_meaning():
    page = (ROOT / "docs/brokers.md").read_text()
    rows = [f"| `{one.name}` | {one.default()} | {one.meaning} |" for one in SETTINGS]
    assert "\n".join(rows) in page
    rows = [f"| `{one.name}` | {one.default} | {one.meaning} |" for one in OF_BROKERS]
    assert "\n".join(rows) in page


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_each_setting_counts(setting):
    text = "false" if isinstance(setting.kind, Flag) else "4321"
    assert setting.text_of(settings_of(given_by_environment({setting.variable: text}))) == text != setting.default()


def test_each_bound_is_a_setting():
    assert {one.field for one in SETTINGS if one.group == "bounds"} == {field.name for field in fields(Bounds)}
