"""Connect's structs as messages of Protobuf, and back."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from tidelog.connect.converters.json_values import decimal_of, unscaled
from tidelog.connect.converters.protobuf_schemas import ENUM, is_union
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, SchemaType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOGICAL: Final = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_SIGNED: Final = 1 << 63


# --- to Protobuf ---------------------------------------------------------------------------------------------


def fill(message: Any, schema: ConnectSchema, value: Mapping[str, Any]) -> None:
    """Set a message's fields to those of a struct. Raises `DataError` for values that no field takes."""
    for field in schema.fields:
        found = value.get(field.name)
        found = field.schema.default if found is None else found
        if found is None:
            continue
        if is_union(field.schema):
            branch = next((one for one in field.schema.fields if found.get(one.name) is not None), None)
            if branch is not None:
                _set(message, branch.name, branch.schema, found[branch.name])
        else:
            _set(message, field.name, field.schema, found)


def _set(message: Any, name: str, schema: ConnectSchema, value: Any) -> None:
    inner = schema.value_schema
    if schema.type is SchemaType.ARRAY and inner is not None:
        items = getattr(message, name)
        for one in value:
            if _is_message(inner):
                _put(items.add(), inner, _present(one, name))
            else:
                items.append(_plain(inner, _present(one, name)))
    elif schema.type is SchemaType.MAP and inner is not None and schema.key_schema is not None:
        entries = getattr(message, name)
        for key, one in value.items():
            if _is_message(inner):
                _put(entries[key], inner, _present(one, name))
            else:
                entries[_present(key, name)] = _plain(inner, _present(one, name))
    elif _is_message(schema):
        getattr(message, name).SetInParent()
        _put(getattr(message, name), schema, value)
    else:
        setattr(message, name, _plain(schema, value))


def _is_message(schema: ConnectSchema) -> bool:
    return schema.type is SchemaType.STRUCT or schema.name in _LOGICAL


def _present(value: Any, name: str) -> Any:
    if value is None:
        raise DataError(f"The field {name} has a null inside, which no list or map of Protobuf takes.")
    return value


def _plain(schema: ConnectSchema, value: Any) -> Any:
    if ENUM in schema.parameters:
        number = schema.parameters.get(f"{ENUM}.{value}")
        if number is None:
            raise DataError(f"{value!r} is none of the values of {schema.parameters[ENUM]}.")
        return int(number)
    return bytes(value) if schema.type is SchemaType.BYTES else value


def _put(message: Any, schema: ConnectSchema, value: Any) -> None:
    """Set a message to a struct's or a logical type's value."""
    if schema.name == DECIMAL:
        scale = int(schema.parameters[SCALE])
        message.value, message.scale = unscaled(value, scale), scale
        message.precision = len(value.as_tuple().digits)
    elif schema.name == DATE:
        message.year, message.month, message.day = value.year, value.month, value.day
    elif schema.name == TIME:
        message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
        message.nanos = value.microsecond * 1000
    elif schema.name == TIMESTAMP:
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        message.seconds = since // timedelta(seconds=1)
        message.nanos = since % timedelta(seconds=1) // timedelta(microseconds=1) * 1000
    else:
        fill(message, schema, value)


# --- from Protobuf -------------------------------------------------------------------------------------------


def struct_of_message(message: Any, schema: ConnectSchema) -> dict[str, Any]:
    """The struct of a message. Raises `DataError` for dates that there are not."""
    found: dict[str, Any] = {}
    for field in schema.fields:
        if is_union(field.schema):
            chosen = next((one for one in field.schema.fields if message.HasField(one.name)), None)
            found[field.name] = None if chosen is None else {chosen.name: _get(message, chosen.name, chosen.schema)}
        else:
            found[field.name] = _get(message, field.name, field.schema)
    return found


def _get(message: Any, name: str, schema: ConnectSchema) -> Any:
    value, inner = getattr(message, name), schema.value_schema
    if schema.type is SchemaType.ARRAY and inner is not None:
        return [_value(one, inner) for one in value]
    if schema.type is SchemaType.MAP and inner is not None and schema.key_schema is not None:
        return {_value(key, schema.key_schema): _value(value[key], inner) for key in value}
    if message.DESCRIPTOR.fields_by_name[name].has_presence and not message.HasField(name):
        return None
    return _value(value, schema)


def _value(value: Any, schema: ConnectSchema) -> Any:
    if schema.name == DECIMAL:
        return decimal_of(value.value, value.scale)
    if schema.name in _LOGICAL:
        try:
            return _moment(value, str(schema.name))
        except (ValueError, OverflowError) as error:
            raise DataError(f"The message is no {schema.name}: {error}") from None
    if schema.type is SchemaType.STRUCT:
        return struct_of_message(value, schema)
    if ENUM in schema.parameters:
        prefix = f"{ENUM}."
        symbols = {one: key.removeprefix(prefix) for key, one in schema.parameters.items() if key.startswith(prefix)}
        return symbols.get(str(value), f"UNKNOWN_ENUM_VALUE_{schema.parameters[ENUM]}_{value}")
    if schema.type is SchemaType.INT64 and value >= _SIGNED:  # Java's long has no other form for them
        return value - 2 * _SIGNED
    return value


def _moment(value: Any, name: str) -> Any:
    if name == DATE:
        return date(value.year, value.month, value.day)
    if name == TIME:
        return time(value.hours, value.minutes, value.seconds, value.nanos // 1000)
    return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
