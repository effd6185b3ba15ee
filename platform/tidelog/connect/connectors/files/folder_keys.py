"""The keys of the folder source and sink, by the names that spool directory and S3 connectors have for them."""

import re
from typing import Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import between, non_empty, one_of, read_by
from tidelog.connect.config.values import ConfigKind

SOURCE_FORMATS: Final = ("lines", "json", "csv", "parquet")
SINK_FORMATS: Final = ("lines", "json", "csv", "parquet")
SOURCE_KEYS: Final = (
    ConfigDef()
    .define("input.path", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The folder to read.", validator=non_empty)
    .define("topic", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The topic for its records.", validator=non_empty)
    .define("input.file.pattern", ConfigKind.STRING, ".*", Importance.HIGH,
            "The expression that names of files match as a whole.", validator=read_by(re.compile))
    .define("input.path.walk.recursively", ConfigKind.BOOLEAN, False, Importance.LOW, "Whether folders below count.")
    .define("format", ConfigKind.STRING, "lines", Importance.HIGH,
            "lines: a text for each; json: a JSON value for each line; csv: a struct for each row below a header; "
            "parquet: a struct for each row.", validator=one_of(*SOURCE_FORMATS))
    .define("csv.separator.char", ConfigKind.STRING, ",", Importance.LOW, "What separates columns.",
            validator=non_empty)
    .define("batch.size", ConfigKind.INT, 1000, Importance.LOW, "How many records a poll gives at most.",
            validator=between(1))
    .define("halt.on.error", ConfigKind.BOOLEAN, True, Importance.HIGH,
            "Whether a line that is not of the format fails the task; otherwise it is logged and left out.")
    .define("cleanup.policy", ConfigKind.STRING, "NONE", Importance.HIGH,
            "What becomes of a file that was read: NONE leaves it, and it may grow; MOVE and DELETE take files as "
            "whole when they appear.", validator=one_of("NONE", "MOVE", "DELETE", any_case=True))
    .define("finished.path", ConfigKind.STRING, "", Importance.HIGH, "Where cleanup.policy=MOVE moves files to.")
    .define("error.path", ConfigKind.STRING, "", Importance.HIGH,
            "Where files are moved to that have something that is not of the format, or can't be read; needs "
            "halt.on.error=false.")
    .define("file.minimum.age.ms", ConfigKind.LONG, 0, Importance.LOW,
            "How long a file must be unchanged before it is read.", validator=between(0))
    .define("empty.poll.wait.ms", ConfigKind.LONG, 500, Importance.LOW,
            "How long a poll that finds nothing waits before the folder is listed again.", validator=between(1, 1000))
)  # fmt: skip
SINK_KEYS: Final = (
    ConfigDef()
    .define("output.path", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The folder to write to.",
            validator=non_empty)
    .define("topics.dir", ConfigKind.STRING, "topics", Importance.LOW, "The folder below it for topics' folders.",
            validator=non_empty)
    .define("format", ConfigKind.STRING, "json", Importance.HIGH,
            "lines or json: a value for each line; csv: structs or maps below a header; parquet: the same as columns.",
            validator=one_of(*SINK_FORMATS))
    .define("flush.size", ConfigKind.INT, 1000, Importance.HIGH, "How many records a file has at most.",
            validator=between(1))
    .define("rotate.interval.ms", ConfigKind.LONG, -1, Importance.HIGH,
            "How long after its first record a file is written although it is not full; -1 for never.")
    .define("filename.offset.zero.pad.width", ConfigKind.INT, 10, Importance.LOW,
            "How many digits offsets in names of files have at least.", validator=between(0))
)  # fmt: skip
