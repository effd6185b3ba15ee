"""The configuration of an application: Kafka Streams' keys, and what reading and writing a lake needs. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import FieldKey, KeyTable, KeyWords, fields_of, key, names_of
from tidelog.log.base.typed_values import Choice, Matching, Text, Whole, hint, names
from tidelog.log.spark_options import STORE_PREFIX

_NAME: Final = "[A-Za-z0-9._-]{1,200}"
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
    """A checked configuration.

    `session`: settings of Spark's session; `source`: options of the sources; `store`: how to reach the lake's store.
    """

    application_id: str = key(
        "application.id",
        "",
        Matching(
            _NAME, "up to 200 letters, digits, '.', '_' and '-'. It names the application's checkpoints and topics"
        ),
        "the name of the application's checkpoints and topics",
    )
    lake: str = key(
        "lake", "", Text(), "the lake's address, or an open lake; `lake.s3.…` keys say how to reach its store"
    )
    reset: str = key(
        "auto.offset.reset",
        "earliest",
        names("earliest", "latest"),
        "where a topic is begun: `earliest` or `latest`",
    )
    commit_interval_ms: int = key(
        "commit.interval.ms", 100, Whole(0, of="milliseconds"), "how often a batch begins, at most"
    )
    guarantee: str = key(
        "processing.guarantee",
        "exactly_once_v2",
        Choice(
            dict.fromkeys(("exactly_once_v2", "exactly_once"), "exactly_once_v2"),
            others="an application here is always exactly_once_v2. Leave it out",
        ),
        "there is no other",
    )
    state_folder: str = key(
        "state.dir",
        "__streams",
        Matching(rf"(?!(.*/)?\.\.(/|$)){_NAME}(/{_NAME})*", "a folder inside the lake, as '__streams'"),
        "the folder in the lake for checkpoints",
    )
    session: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    store: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "StreamsConfig":
        """The configuration of its keys. Raises `InvalidConfigError`."""
        lake = given.get("lake")
        if lake is None:
            raise InvalidConfigError("The configuration has no lake: give its address, as {'lake': '/tmp/lake'}.")
        own = {"application.id": "", **given, "lake": getattr(lake, "uri", lake)}
        session, source, store = (_taken(own, begin) for begin in (_SESSION_PREFIX, _SOURCE_PREFIX, STORE_PREFIX))
        return cls(
            **fields_of(cls, KeyTable(names_of(cls), _Words()).read(own.items())),
            session={**_STATE_STORE, **session},
            source={name.removeprefix(_SOURCE_PREFIX): value for name, value in source.items()},
            store={**dict(getattr(lake, "options", {})), **store},
        )

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


class _Words(KeyWords[FieldKey]):
    def value(self, name: str, key: FieldKey, given: Any) -> Any:
        try:
            return key.kind.parse(given)
        except ValueError as error:
            raise InvalidConfigError(f"{name} is '{given}': {error}.") from None

    def unknown(self, name: Any, known: Iterable[str]) -> InvalidConfigError:
        return InvalidConfigError(f"No such configuration: {name}. {hint(name, known, 'streams')}")


def _taken(left: dict[str, Any], prefix: str) -> dict[str, str]:
    """The keys below a prefix, which leave the mapping."""
    return {name: str(left.pop(name)) for name in list(left) if name.startswith(prefix)}
