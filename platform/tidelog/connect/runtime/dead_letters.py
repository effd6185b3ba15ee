"""The topic that gets the records that a sink gives up."""

from collections.abc import Mapping
from typing import Any

from tidelog.connect.runtime.conversion import RawRecord
from tidelog.connect.runtime.source_writers import raw_table
from tidelog.connect.runtime.tolerance import RecordFailedError, dead_letter_headers
from tidelog.log.lake import Lake


class DeadLetterTopic:
    """The dead letter topic of one task. `parsed`: the connector's configuration."""

    def __init__(self, lake: Lake, connector: str, task: int, parsed: Mapping[str, Any]) -> None:
        self._connector, self._task = connector, task
        self._appender = lake.appender(parsed["errors.deadletterqueue.topic.name"])
        self._with_headers = parsed["errors.deadletterqueue.context.headers.enable"]

    def put(self, raw: RawRecord, failure: RecordFailedError) -> None:
        """As of `DeadLetters`."""
        headers = list(raw.headers)
        if self._with_headers:
            place = (raw.topic, raw.partition or 0, raw.offset)
            headers = dead_letter_headers(raw.headers, failure, self._connector, self._task, place)
        letter = RawRecord(self._appender.topic, None, raw.key, raw.value, raw.timestamp_ms, headers)
        self._appender.append(raw_table([letter]))


def dead_letters_of(lake: Lake, connector: str, task: int, parsed: Mapping[str, Any]) -> DeadLetterTopic | None:
    """The topic that a configuration names, None where it names none."""
    named = parsed["errors.deadletterqueue.topic.name"]
    return DeadLetterTopic(lake, connector, task, parsed) if named else None
