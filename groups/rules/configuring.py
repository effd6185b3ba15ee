"""What a group is configured with changes. Pure."""

from collections.abc import Mapping

from tidelog.groups.config import ConfigBounds, GroupConfig
from tidelog.groups.model import Decision, GroupView
from tidelog.groups.rules.members import check_group_id


def configure(
    view: GroupView, group_id: str, changes: Mapping[str, str | None], bounds: tuple[ConfigBounds, ...] = ()
) -> Decision[GroupConfig]:
    """Change what a group is configured with; None resets a key. The group need not be there yet.

    `bounds`: of values that are set now; others may have been set where other bounds held.

    Raises `InvalidGroupError`, `InvalidConfigError`.
    """
    check_group_id(group_id)
    config = GroupConfig.parse(view.config).merged(changes)
    for bound in bounds:
        if bound.key in changes:
            bound.check(config)
    return Decision(response=config, config=config.overrides)
