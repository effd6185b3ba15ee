"""What a group may be configured with: bounds of what is set now, and of nothing that was set before."""

import pytest

from tidelog.groups.config import DEFAULT_BOUNDS, GroupConfig
from tidelog.groups.model import GroupView
from tidelog.groups.rules.configuring import configure
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import MAX_INT


def test_every_key_has_bounds() -> None:
    assert {bound.key for bound in DEFAULT_BOUNDS} == GroupConfig.KEYS.keys()


@pytest.mark.parametrize("bound", DEFAULT_BOUNDS, ids=lambda bound: bound.key)
def test_values_are_within_the_defaults_of_brokers(bound) -> None:
    for value in (bound.low, bound.high):
        assert configure(GroupView(), "g", {bound.key: str(value)}, DEFAULT_BOUNDS).config == {bound.key: str(value)}
    with pytest.raises(InvalidConfigError, match="less than or equal" if bound.high < MAX_INT else None):
        configure(GroupView(), "g", {bound.key: str(bound.high + 1)}, DEFAULT_BOUNDS)
    with pytest.raises(InvalidConfigError, match=None if bound.low == 0 else "greater than or equal"):
        configure(GroupView(), "g", {bound.key: str(bound.low - 1)}, DEFAULT_BOUNDS)


def test_what_was_set_where_other_bounds_hold_is_no_hindrance() -> None:
    view = GroupView(config={"consumer.session.timeout.ms": "9000"})
    changed = configure(view, "g", {"streams.num.standby.replicas": "1"}, DEFAULT_BOUNDS)
    assert changed.config == {**view.config, "streams.num.standby.replicas": "1"}
