"""Which columns the sink takes, and of which types: Kafka's sink's rule, with its words.

Source: `KafkaWriter.validateQuery` of Spark 4.2.
"""

from collections.abc import Iterable, Sequence

from tidelog.log.base.errors import InvalidOptionError
from tidelog.sinks.options import SinkOptions

HEADERS = "array<struct<key:string,value:binary>>"

_BYTES = ("string", "binary")


def check_columns(columns: Iterable[tuple[str, str]], options: SinkOptions) -> None:
    """Refuse columns that the sink can't write. Raises InvalidOptionError.

    `columns` are names and types in order, types as Spark's `DataType.simpleString` writes them. Names are
    case-sensitive and the first of equal names counts. Columns that the sink does not know have no effect, nor has
    `columns`, a typed topic's fields, beside `value`.
    """
    types: dict[str, str] = {}
    for name, kind in columns:
        types.setdefault(name, kind)
    if options.topic is None:
        if "topic" not in types:
            raise InvalidOptionError(
                "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
            )
        _check(types, "topic", ("string",))
    _check(types, "key", _BYTES)
    if "value" not in types and "columns" not in types:
        raise InvalidOptionError("Required attribute 'value' not found")
    if "value" not in types and not types["columns"].startswith("struct<"):
        raise InvalidOptionError(
            f"columns attribute unsupported type {types['columns']}. columns must be a struct of a typed topic's fields"
        )
    _check(types, "value", _BYTES)
    _check(types, "headers", (HEADERS,))
    _check(types, "partition", ("int",))
    if options.include_timestamp:
        if "timestamp" not in types:
            raise InvalidOptionError(
                "Required attribute 'timestamp' not found: the option includeTimestamp writes that column. Add it, "
                "or leave the option out to have records stamped when they are written."
            )
        _check(types, "timestamp", ("timestamp",))


def _check(types: dict[str, str], name: str, allowed: Sequence[str]) -> None:
    kind = types.get(name)
    if kind is not None and kind not in allowed:
        raise InvalidOptionError(
            f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(allowed)}"
        )
