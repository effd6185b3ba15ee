"""What the worker hands to the Spark application of a Delta sink: a file that only its user can read."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class DeltaJob:
    """`lake`, `options`: the lake and how its store is reached. `config`: the connector's. `worker`: the worker's
    properties, whose converters are the default. `group_id`: the consumer group that shows how far the sink is.
    """

    lake: str
    options: Mapping[str, str]
    config: Mapping[str, str]
    worker: Mapping[str, str]
    group_id: str

    @property
    def connector(self) -> str:
        """The connector's name."""
        return self.config["name"]

    @cached_property
    def text(self) -> str:
        """The job as `of` takes it."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> "DeltaJob":
        """The job of a text."""
        found: dict[str, Any] = json.loads(text)
        return DeltaJob(**found)

    @staticmethod
    def read(path: str) -> "DeltaJob":
        """The job of a file."""
        return DeltaJob.of(Path(path).read_text(encoding="utf-8"))
