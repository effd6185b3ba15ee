"""The keys of the Delta sinks."""

from typing import Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import between, non_empty
from tidelog.connect.config.values import ConfigKind


def table_keys() -> ConfigDef:
    """The keys of a sink's tables."""
    return (
        ConfigDef()
        .define("table.location", ConfigKind.STRING, REQUIRED, Importance.HIGH,
                "The table's folder or address (s3://…); ${topic} stands for the topic.", validator=non_empty)
        .define("pk.fields", ConfigKind.LIST, [], Importance.HIGH,
                "The columns of the key: fields of a struct key, or a name for one that is no struct; all "
                "fields when empty.")
        .define("merge", ConfigKind.BOOLEAN, True, Importance.HIGH,
                "Whether records change the row of their key, and null values delete it; otherwise every record is "
                "a row.")
        .define("auto.create", ConfigKind.BOOLEAN, True, Importance.MEDIUM, "Whether a missing table is created.")
        .define("auto.evolve", ConfigKind.BOOLEAN, True, Importance.MEDIUM, "Whether missing columns are added.")
    )  # fmt: skip


DELTA_KEYS: Final = (
    table_keys()
    .define("flush.size", ConfigKind.INT, 10_000, Importance.MEDIUM, "How many records a commit has at most.",
            validator=between(1))
    .define("rotate.interval.ms", ConfigKind.LONG, 5_000, Importance.MEDIUM,
            "How long after its first record a commit is made although it is not full.", validator=between(0))
    .define("storage.options", ConfigKind.LIST, [], Importance.MEDIUM,
            "Options of the object store as name=value, by deltalake's names.")
)  # fmt: skip
