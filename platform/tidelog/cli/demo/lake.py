"""The demo's lake: where its files lie, and what of an earlier demo is deleted before a new one."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import orjson

from tidelog.commands.failures import UsageProblemError
from tidelog.log.lake import Lake

DEFAULT_FOLDER = Path("demo-lake")
PARTITIONS = {"flights": 6, "delays": 4}
TYPED_PARTITIONS = {"typed_flights": 2}  # created by the step that fills it

_OWN = PARTITIONS | TYPED_PARTITIONS

# The records are of 2013, and retention would delete what is older than a week.
_KEPT_FOR_GOOD = {"retention.ms": "-1"}


class DemoFolder:
    """A lake's folder, and in it the demo's own: Spark's checkpoint, logs, and which topics are the demo's."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        own = lake / "__demo"
        self.checkpoint = own / "checkpoint"
        self.log = own / "spark.log"
        self.broker_log = own / "broker.log"
        self._topics = own / "topics.json"

    def start_afresh(self, lake: Lake) -> bool:
        """Create the demo's topics; whether an earlier demo's were deleted first, with the query's checkpoint.

        Topics of these names that no demo made are left alone: raises `UsageProblemError`.
        """
        existing = {name: lake.describe_topic(name).id for name in lake.topics() if name in _OWN}
        made = orjson.loads(self._topics.read_bytes()) if self._topics.exists() else {}
        if strange := sorted(name for name, topic_id in existing.items() if made.get(name) != topic_id):
            raise UsageProblemError(
                f"The lake {self.lake} has a topic '{strange[0]}' that is not the demo's, and the demo makes its own"
                " again each time. Give the demo another folder: tidelog --lake FOLDER demo."
            )
        for name in existing:
            lake.delete_topic(name)
        if self.checkpoint.exists():
            shutil.rmtree(self.checkpoint)
        self._topics.parent.mkdir(exist_ok=True)
        self._create(lake, PARTITIONS, {}, {})
        return bool(existing)

    def create_typed(self, lake: Lake, config: Mapping[str, str]) -> None:
        """Create the typed topic, which is the demo's, too."""
        self._create(lake, TYPED_PARTITIONS, config, orjson.loads(self._topics.read_bytes()))

    def _create(self, lake: Lake, topics: Mapping[str, int], config: Mapping[str, str], made: dict[str, str]) -> None:
        made |= create_topics(lake, topics, config)
        self._topics.write_bytes(orjson.dumps(made))


def create_topics(lake: Lake, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> dict[str, str]:
    """Create topics with these numbers of partitions, whose records stay for good; {name: topic id}."""
    return {
        name: lake.create_topic(name, count, {**_KEPT_FOR_GOOD, **(config or {})}).id for name, count in topics.items()
    }
