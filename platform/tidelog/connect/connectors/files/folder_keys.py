"""The keys of the folder source and sink, by the names that spool directory and S3 connectors have for them."""

from typing import Final

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED, FLAG, PATTERN, TEXT, as_written
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of, long_of

SOURCE_FORMATS: Final = ("lines", "json", "csv", "parquet")
SINK_FORMATS: Final = ("lines", "json", "csv", "parquet")
SOURCE_KEYS: Final = (
    ConfigDef()
    .define("input.path", FILLED, REQUIRED, Importance.HIGH, "The folder to read.")
    .define("topic", FILLED, REQUIRED, Importance.HIGH, "The topic for its records.")
    .define("input.file.pattern", PATTERN, ".*", Importance.HIGH,
            "The expression that names of files match as a whole.")
    .define("input.path.walk.recursively", FLAG, False, Importance.LOW, "Whether folders below count.")
    .define("format", names(*SOURCE_FORMATS), "lines", Importance.HIGH,
            "lines: a text for each; json: a JSON value for each line; csv: a struct for each row below a header; "
            "parquet: a struct for each row.")
    .define("csv.separator.char", FILLED, ",", Importance.LOW, "What separates columns.")
    .define("batch.size", int_of(1), 1000, Importance.LOW, "How many records a poll gives at most.")
    .define("halt.on.error", FLAG, True, Importance.HIGH,
            "Whether a line that is not of the format fails the task; otherwise it is logged and left out.")
    .define("cleanup.policy", as_written("NONE", "MOVE", "DELETE"), "NONE", Importance.HIGH,
            "What becomes of a file that was read: NONE leaves it, and it may grow; MOVE and DELETE take files as "
            "whole when they appear.")
    .define("finished.path", TEXT, "", Importance.HIGH, "Where cleanup.policy=MOVE moves files to.")
    .define("error.path", TEXT, "", Importance.HIGH,
            "Where files are moved to that have something that is not of the format, or can't be read; needs "
            "halt.on.error=false.")
    .define("file.minimum.age.ms", long_of(0), 0, Importance.LOW,
            "How long a file must be unchanged before it is read.")
    .define("empty.poll.wait.ms", long_of(1, 1000), 500, Importance.LOW,
            "How long a poll that finds nothing waits before the folder is listed again.")
)  # fmt: skip
SINK_KEYS: Final = (
    ConfigDef()
    .define("output.path", FILLED, REQUIRED, Importance.HIGH, "The folder to write to.")
    .define("topics.dir", FILLED, "topics", Importance.LOW, "The folder below it for topics' folders.")
    .define("format", names(*SINK_FORMATS), "json", Importance.HIGH,
            "lines or json: a value for each line; csv: structs or maps below a header; parquet: the same as columns.")
    .define("flush.size", int_of(1), 1000, Importance.HIGH, "How many records a file has at most.")
    .define("rotate.interval.ms", long_of(), -1, Importance.HIGH,
            "How long after its first record a file is written although it is not full; -1 for never.")
    .define("filename.offset.zero.pad.width", int_of(0), 10, Importance.LOW,
            "How many digits offsets in names of files have at least.")
)  # fmt: skip
