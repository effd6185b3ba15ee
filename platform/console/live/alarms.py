"""What is wrong with a lake, as far as a look shows it."""

from collections.abc import Mapping
from typing import Any

from tidelog.console.live.figures import ConsoleGroup, ConsoleTopic
from tidelog.doctor.facts import GroupHealth, LakeFacts, TopicHealth
from tidelog.doctor.rules import examined
from tidelog.metrics.lake_watch import LakeLook


def alarms(
    uri: str, look: LakeLook, topics: Mapping[str, ConsoleTopic], groups: Mapping[str, ConsoleGroup]
) -> list[Mapping[str, Any]]:
    """What the doctor's rules find in a look alone, without a trial of the store."""
    facts = LakeFacts(
        uri,
        look.at_ms,
        space=look.space,
        look=look,
        topics={name: TopicHealth(one.files, one.small_files) for name, one in topics.items()},
        groups={
            name: GroupHealth(
                len(view.group.members) if view.group else 0, groups[name].records, groups[name].seconds(look.at_ms)
            )
            for name, view in look.groups.items()
        },
        runs=look.runs,
    )
    return [{"name": one.rule, "level": str(one.level), "what": one.what, "do": one.do} for one in examined(facts)]
