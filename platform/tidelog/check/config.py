"""Configuration, for `check`: the lake's own file, and what a topic's metaData holds."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tidelog.check.report import Finding, Kind
from tidelog.log.base.errors import InvalidConfigError, MissingPackageError, ObjectNotFoundError
from tidelog.log.config.lake_file import lake_file
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.disk_format import FORMAT_VERSION, other_format
from tidelog.log.delta.schema import COLUMNS
from tidelog.log.delta.table_schema import TOPIC, TableShape, schema_problems
from tidelog.log.state.topic_state import CONFIG_PREFIX, FACTS, VALUE_SCHEMAS
from tidelog.log.state.verify import IMPLEMENTED_PROPERTIES
from tidelog.log.storage.port import Storage
from tidelog.log.typed.descriptions import leaves
from tidelog.log.typed.growth import grown
from tidelog.log.typed.tables import TypedTable
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema

# What tidelog sets and relies on; other properties follow the topic's configuration.
_RELIED_ON = {"delta.enableExpiredLogCleanup": "false"}
_EMPTY_LAKE = lake_file({}).decode()


def check_lake_file(storage: Storage) -> tuple[LakeConfig, list[Finding]]:
    """The lake's configuration as far as it can be read, and what is wrong with its file."""
    try:
        data = storage.get(layout.LAKE_FILE)
    except ObjectNotFoundError:
        what = "The lake's own file is missing: its format and its defaults for topics are not known."
        todo = "Restore it from a copy, or have 'tidelog check --repair' write one and set the defaults again."
        return LakeConfig.parse({}), [Finding(Kind.LAKE_FILE_MISSING, "", layout.LAKE_FILE, what, todo)]
    try:
        body = orjson.loads(data)
        version, config = body.get("format"), body.get("config") or {}
        broken = "" if isinstance(version, int) and isinstance(config, dict) else "it lacks a number 'format'"
    except (ValueError, AttributeError) as e:
        version, config, broken = 0, {}, str(e)
    if broken:
        what = f"The lake's own file can't be read ({broken}): the lake does not open."
        todo = f"Restore it from a copy, or write {_EMPTY_LAKE} to it and set the lake's defaults again."
        return LakeConfig.parse({}), [Finding(Kind.LAKE_FILE_BROKEN, "", layout.LAKE_FILE, what, todo)]
    if version != FORMAT_VERSION:
        what, todo = other_format("The lake", version)
        return LakeConfig.parse({}), [Finding(Kind.LAKE_FORMAT_UNKNOWN, "", layout.LAKE_FILE, what, todo)]
    return _lake_config(config)


def _lake_config(config: Mapping[str, Any]) -> tuple[LakeConfig, list[Finding]]:
    findings = []
    valid = dict(config)
    for key in config:
        try:
            LakeConfig.parse({key: config[key]})
        except (InvalidConfigError, TypeError, AttributeError) as e:
            todo = f"Remove the key {key!r} from {layout.LAKE_FILE}, or correct its value there."
            findings.append(Finding(Kind.LAKE_CONFIG_INVALID, "", layout.LAKE_FILE, str(e), todo))
            del valid[key]
    try:
        return LakeConfig.parse(valid), findings
    except InvalidConfigError as e:
        todo = f"Correct the keys in {layout.LAKE_FILE}."
        findings.append(Finding(Kind.LAKE_CONFIG_INVALID, "", layout.LAKE_FILE, str(e), todo))
        return LakeConfig.parse({}), findings


def topic_config(metadata: Metadata, lake: LakeConfig) -> TopicConfig:
    """The topic's configuration without the values that can't be read."""
    overrides = {k: v for k, v in _overrides(metadata).items() if not _why_invalid(k, v)}
    return TopicConfig.stored(overrides, defaults=lake)


def check_metadata(metadata: Metadata, topic: str, lake: LakeConfig, shape: TableShape = TOPIC) -> Iterator[Finding]:
    """Schema, properties and configuration of a topic's table, as they are at the head of its log.

    `shape`: of the table as it should be.
    """
    for problem in schema_problems(metadata.schema, metadata.partition_columns, shape):
        what = f"The table has a schema that this tidelog does not implement: {problem}. The topic can't be opened."
        todo = "Use a tidelog that knows it, or restore the log folder from a copy."
        yield Finding(Kind.SCHEMA_WRONG, topic, layout.LOG_FOLDER, what, todo)
    for key in sorted(metadata.configuration):
        if key.startswith("delta.") and key not in IMPLEMENTED_PROPERTIES:
            what = f"The table's property {key} is not implemented by this tidelog: the topic can't be opened."
            todo = "Use a tidelog that knows it, or restore the log folder from a copy."
            yield Finding(Kind.FORMAT_UNSUPPORTED, topic, key, what, todo)
    for key, value in _RELIED_ON.items():
        if metadata.configuration.get(key) != value:
            what = f"The table's property {key} is {metadata.configuration.get(key)!r}; tidelog relies on {value!r}."
            todo = "Any 'tidelog topic alter' writes the properties again; don't set them with other tools."
            yield Finding(Kind.PROPERTY_WRONG, topic, key, what, todo)
    yield from _config(metadata, topic, lake)
    yield from _values(metadata, topic)


def _values(metadata: Metadata, topic: str) -> Iterator[Finding]:
    """What a typed topic's table says of its values: its schemas can be read, and explain its columns."""
    try:
        table = TypedTable.of(metadata)
    except (ValueError, KeyError, TypeError):  # the entry that says so has its own finding, and so has the schema
        return
    if table is None:
        return
    todo = "Restore the log folder from a copy; values whose bytes are not stored need it."
    known_leaves: set[tuple[str, str]] = set()
    try:
        for schema in table.schemas:
            try:
                columns = grown(None, compile_schema(*schema.meaning).columns).columns
            except SchemaError as e:
                what = f"Schema {schema.id} of values can't be used: {e} Values that need it can't be read."
                yield Finding(Kind.VALUE_SCHEMAS_WRONG, topic, VALUE_SCHEMAS, what, todo)
                return
            known_leaves.update(() if columns is None else leaves(columns, ""))
    except MissingPackageError:  # says nothing about the lake
        return
    strange = (
        [path for path, kind in leaves(table.columns, "") if (path, kind) not in known_leaves] if table.columns else []
    )
    if strange:
        what = f"The table has columns that no schema of its values has: {', '.join(strange)}."
        yield Finding(Kind.VALUE_SCHEMAS_WRONG, topic, COLUMNS, what, todo)
    text = _overrides(metadata).get("value.schema")
    if text and not any(one.id < 0 and one.text == text for one in table.schemas):
        what = "The table does not know the schema that the topic's value.schema holds: new values get no columns."
        todo = f"Set it again: tidelog topic alter {topic} --config value.schema=…, after resetting it."
        yield Finding(Kind.VALUE_SCHEMAS_WRONG, topic, "value.schema", what, todo)


def _overrides(metadata: Metadata) -> dict[str, str]:
    return {
        k.removeprefix(CONFIG_PREFIX): v
        for k, v in metadata.configuration.items()
        if k.startswith(CONFIG_PREFIX) and k not in FACTS
    }


def _why_invalid(key: str, value: str) -> str:
    try:
        TopicConfig.stored({key: value})
    except InvalidConfigError as e:
        return str(e)
    return ""


def _config(metadata: Metadata, topic: str, lake: LakeConfig) -> Iterator[Finding]:
    overrides = _overrides(metadata)
    valid = dict(overrides)
    for key, value in sorted(overrides.items()):
        if why := _why_invalid(key, value):
            todo = f"Reset it ('tidelog topic alter {topic} --delete-config {key}'), or set a value that the key takes."
            yield Finding(Kind.CONFIG_INVALID, topic, key, why, todo)
            del valid[key]
    try:
        TopicConfig.parse(valid, defaults=lake)
    except InvalidConfigError as e:
        todo = "Change one of the two keys, of the topic or of the lake."
        yield Finding(Kind.CONFIG_INVALID, topic, "configuration", str(e), todo)
