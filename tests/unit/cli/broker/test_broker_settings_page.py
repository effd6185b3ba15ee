"""The settings of brokers: the page that lists them, and that each reaches the broker."""

from dataclasses import fields
from pathlib import Path

import pytest

from tidelog.broker.base.settings import Bounds, BrokerSettings
from tidelog.cli.broker.environment import SETTINGS, with_environment

ROOT = Path(__file__).parents[4]


def test_the_page_lists_each_setting_with_its_default_and_meaning():
    page = (ROOT / "docs/brokers.md").read_text()
    rows = [f"| `{one.name}` | {one.default()} | {one.meaning} |" for one in SETTINGS]
    assert "\n".join(rows) in page


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_each_setting_counts(setting):
    changed = with_environment(BrokerSettings({}), {setting.variable: "4321"})
    group = getattr(changed, setting.group) if setting.group else changed
    assert getattr(group, setting.field) * setting.per == 4321


def test_each_bound_is_a_setting():
    assert {one.field for one in SETTINGS if one.group == "bounds"} == {field.name for field in fields(Bounds)}
