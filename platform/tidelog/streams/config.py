"""The configuration of an application: Kafka Streams' keys, and what reading and writing a lake needs. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.spark_options import STORE_PREFIX

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_GUARANTEES: Final = ("exactly_once_v2", "exactly_once")
_RESETS: Final = ("earliest", "latest")
_SESSION_PREFIX: Final = "spark.sql."
_PARTS_OF_A_STATE: Final = "spark.sql.shuffle.partitions"
_SOURCE_PREFIX: Final = "source."
# RocksDB holds more state than a Java heap, and Spark writes only its changes to the checkpoint.
_STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True)
class StreamsConfig:
    """A checked configuration; see docs/streams.md for its keys.

    `session`: settings of Spark's session; `source`: options of the sources; `store`: how to reach the lake's store.
    """

    application_id: str
    lake: str
    commit_interval: timedelta
    reset: str
    state_folder: str
    session: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    store: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "StreamsConfig":
        """The configuration of its keys. Raises `InvalidConfigError`."""
        left = dict(given)
        application = str(left.pop("application.id", ""))
        if not _NAME.fullmatch(application):
            raise InvalidConfigError(
                f"application.id is '{application}': give up to 200 letters, digits, '.', '_' and '-'. It names the"
                " application's checkpoints and topics."
            )
        lake = left.pop("lake", None)
        if lake is None:
            raise InvalidConfigError("The configuration has no lake: give its address, as {'lake': '/tmp/lake'}.")
        guarantee = str(left.pop("processing.guarantee", _GUARANTEES[0]))
        if guarantee not in _GUARANTEES:
            raise InvalidConfigError(
                f"processing.guarantee is '{guarantee}': an application here is always exactly_once_v2. Leave it out."
            )
        reset = str(left.pop("auto.offset.reset", _RESETS[0]))
        if reset not in _RESETS:
            raise InvalidConfigError(f"auto.offset.reset is '{reset}': give {' or '.join(_RESETS)}.")
        return cls(
            application_id=application,
            lake=str(getattr(lake, "uri", lake)),
            commit_interval=timedelta(milliseconds=_whole(left, "commit.interval.ms", 100)),
            reset=reset,
            state_folder=_folder(str(left.pop("state.dir", "__streams"))),
            session={**_STATE_STORE, **_taken(left, _SESSION_PREFIX, keep=True)},
            source=_taken(left, _SOURCE_PREFIX, keep=False),
            store={**dict(getattr(lake, "options", {})), **_taken(left, STORE_PREFIX, keep=True)},
        )._complete(left)

    def _complete(self, left: Mapping[str, Any]) -> "StreamsConfig":
        if left:
            raise InvalidConfigError(
                f"No such configuration: {', '.join(sorted(left))}. docs/streams.md lists the keys."
            )
        return self

    def session_settings(self, given: Mapping[str, str], cores: int) -> dict[str, str]:
        """The settings of the application's session: its own, and else those of the session that it was `given`.

        A state has a part for each core where neither says how many: Spark's own 200 are for far larger clusters.
        """
        return {_PARTS_OF_A_STATE: str(cores), **given, **self.session}

    @property
    def folder(self) -> str:
        """The application's folder in the lake."""
        return f"{self.state_folder}/{self.application_id}"

    @property
    def source_options(self) -> dict[str, str]:
        """The options of every source."""
        return {"lake": self.lake, "startingOffsets": self.reset, **self.store, **self.source}

    @property
    def sink_options(self) -> dict[str, str]:
        """The options of every sink."""
        return {"lake": self.lake, "includeTimestamp": "true", **self.store}


def _whole(left: dict[str, Any], key: str, default: int) -> int:
    text = str(left.pop(key, default))
    if not text.isdecimal():
        raise InvalidConfigError(f"{key} is '{text}': give a whole number of milliseconds, 0 or more.")
    return int(text)


def _folder(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/") or not all(_NAME.fullmatch(part) for part in text.split("/")):
        raise InvalidConfigError(f"state.dir is '{text}': give a folder inside the lake, as '__streams'.")
    return text


def _taken(left: dict[str, Any], prefix: str, *, keep: bool) -> dict[str, str]:
    """The keys below a prefix, which leave the mapping."""
    found = {key: str(left.pop(key)) for key in list(left) if key.startswith(prefix)}
    return found if keep else {key.removeprefix(prefix): value for key, value in found.items()}
