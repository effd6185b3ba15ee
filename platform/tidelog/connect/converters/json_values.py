"""Values of Connect as JSON, and back, by the rules of Connect's `JsonConverter` for each type.

`registry`: by those of Confluent's JsonSchemaData, where they differ: a union is the value that it has, and a map that
is not by texts a list of objects, each with a key and a value.
"""

import base64
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, NamedTuple

import orjson

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    ALL_DIGITS,
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaType,
    check_value,
)

_DAY: Final = date(1970, 1, 1)
_INSTANT: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
# The struct that stands for a union, where schemas are in a registry.
ONE_OF: Final = "io.confluent.connect.json.OneOf"
_WHOLE: Final = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_NESTED: Final = frozenset({SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP})


# Zeros that a number may have before or behind its digits, as Jackson's StreamReadConstraints bound them: written out,
# 1e999999999 takes a gigabyte.
_MOST_ZEROS: Final = 100_000


def exact_number(text: str) -> Decimal:
    """A number with a point or an exponent, from JSON. Raises ValueError for one that is too long, written out."""
    number = Decimal(text)
    if abs(number.adjusted()) > _MOST_ZEROS or len(text) > _MOST_ZEROS:
        raise ValueError(f"the number {text[:40]} has more than {_MOST_ZEROS} digits, written out")
    return number


def unscaled(value: Decimal, scale: int) -> bytes:
    """A decimal's digits at a scale, as two's complement, big endian. Raises `DataError` for one with more digits."""
    try:
        whole = value.scaleb(scale, ALL_DIGITS)
        number = int(whole)
        exact = whole == number
    except (InvalidOperation, ValueError, OverflowError):
        exact, number = False, 0
    if not exact:
        raise DataError(f"Decimal {value} has not the scale of its schema, {scale}.")
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def decimal_of(data: bytes, scale: int) -> Decimal:
    """The decimal of two's complement bytes."""
    digits = tuple(map(int, str(abs(number := int.from_bytes(data, "big", signed=True)))))
    return Decimal((int(number < 0), digits, -scale))


def number_of(value: Any) -> int:
    """A date, time or instant as the number that Connect's logical types have: days, or ms."""
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _INSTANT) // _MS
    if isinstance(value, date):
        return (value - _DAY).days
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000  # type: ignore[no-any-return]


def to_json(schema: ConnectSchema | None, value: Any, *, numeric: bool = False, registry: bool = False) -> Any:
    """A value as JSON has it. `numeric`: decimals are numbers, not their bytes. Raises `DataError`."""
    if schema is None:
        return _free(value, numeric=numeric)
    if value is None:
        if schema.default is not None:
            return to_json(schema, schema.default, numeric=numeric, registry=registry)
        if schema.optional:
            return None
        raise DataError("Conversion error: null value for field that is required and has no default value")
    if schema.type in _NESTED:
        write = partial(to_json, numeric=numeric, registry=registry)
        if schema.type is SchemaType.STRUCT and isinstance(value, Mapping):
            return _struct_to_json(schema, value, write, registry=registry)
        if schema.type is SchemaType.ARRAY and isinstance(value, (list, tuple)):
            return [write(schema.value_schema, one) for one in value]
        if schema.type is SchemaType.MAP and isinstance(value, dict):
            return _map_to_json(schema, value, write, registry=registry)
    check_value(schema, value)
    if schema.name == DECIMAL and not numeric:
        return _text64(unscaled(value, int(schema.parameters.get(SCALE, "0"))))
    return _free(value, numeric=numeric)


def _struct_to_json(
    schema: ConnectSchema, value: Mapping[str, Any], write: Callable[..., Any], *, registry: bool
) -> Any:
    for unknown in value.keys() - {one.name for one in schema.fields}:
        raise DataError(f'"{unknown}" is not a valid field name of the struct {schema.name or "without name"}.')
    if registry and schema.name == ONE_OF:
        chosen = next((one for one in schema.fields if value.get(one.name) is not None), None)
        return None if chosen is None else write(chosen.schema, value[chosen.name])
    return {one.name: write(one.schema, value.get(one.name)) for one in schema.fields}


def _map_to_json(schema: ConnectSchema, value: Mapping[Any, Any], write: Callable[..., Any], *, registry: bool) -> Any:
    """A map by texts is an object, any other an array of pairs."""
    if by_texts(schema):
        return {key: write(schema.value_schema, one) for key, one in value.items()}
    pairs = [[write(schema.key_schema, key), write(schema.value_schema, one)] for key, one in value.items()]
    return [{"key": key, "value": one} for key, one in pairs] if registry else pairs


def by_texts(schema: ConnectSchema) -> bool:
    """Whether a map is by texts, as JSON's objects are."""
    keys = schema.key_schema
    return keys is not None and keys.type is SchemaType.STRING and not keys.optional


def _free(value: Any, *, numeric: bool) -> Any:
    """A value without a schema, or of a type that needs none."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _free(one, numeric=numeric) for key, one in value.items()}
        return [[_free(key, numeric=numeric), _free(one, numeric=numeric)] for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [_free(one, numeric=numeric) for one in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text64(bytes(value))
    if isinstance(value, (date, time)):
        return number_of(value)
    if isinstance(value, Decimal):
        if not numeric:
            return _text64(unscaled(value, max(0, -int(value.as_tuple().exponent))))
        return orjson.Fragment(format(value, "f"))
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    raise DataError(f"A value of Python's class {type(value).__name__} has no form in JSON.")


class _Rules(NamedTuple):
    """As for `from_json`."""

    default: bool
    registry: bool


def from_json(schema: ConnectSchema | None, value: Any, *, default: bool = True, registry: bool = False) -> Any:
    """The value of JSON, by its schema. `default`: a null is the schema's default. Raises `DataError`."""
    return _read(schema, value, _Rules(default, registry))


def _read(schema: ConnectSchema | None, value: Any, rules: _Rules) -> Any:
    if schema is None:
        return value
    if value is None:
        if schema.default is not None and rules.default:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.type.name} field")
    read = _READERS.get(schema.name or "") or _TYPES[schema.type]
    return read(schema, value, rules)


def _refused(schema: ConnectSchema, value: Any) -> DataError:
    return DataError(f"Invalid type for {schema.name or schema.type.name}: {type(value).__name__}")


def _read_whole(schema: ConnectSchema, value: Any, _: _Rules) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _refused(schema, value)
    number = int(value)
    check_value(ConnectSchema(schema.type), number)
    return number


def _read_float(schema: ConnectSchema, value: Any, _: _Rules) -> float:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise _refused(schema, value)
    return float(value)


def _read_same(schema: ConnectSchema, value: Any, _: _Rules) -> Any:
    check_value(ConnectSchema(schema.type), value)
    return value


def _read_bytes(schema: ConnectSchema, value: Any, _: _Rules) -> bytes:
    if not isinstance(value, str):
        raise _refused(schema, value)
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise DataError(f"Invalid bytes field: {error}") from None


def _read_array(schema: ConnectSchema, value: Any, rules: _Rules) -> list[Any]:
    if not isinstance(value, list):
        raise _refused(schema, value)
    return [_read(schema.value_schema, one, rules) for one in value]


def _read_map(schema: ConnectSchema, value: Any, rules: _Rules) -> dict[Any, Any]:
    if isinstance(value, dict):
        return {key: _read(schema.value_schema, one, rules) for key, one in value.items()}
    pairs: Any = value if isinstance(value, list) else [None]
    if rules.registry and all(isinstance(pair, dict) and pair.keys() == {"key", "value"} for pair in pairs):
        pairs = [[pair["key"], pair["value"]] for pair in pairs]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise _refused(schema, value)
    try:
        return {_read(schema.key_schema, key, rules): _read(schema.value_schema, one, rules) for key, one in pairs}
    except TypeError:
        raise _refused(schema, value) from None


def _read_struct(schema: ConnectSchema, value: Any, rules: _Rules) -> dict[str, Any]:
    if rules.registry and schema.name == ONE_OF:
        chosen = next((one for one in schema.fields if _fits(one.schema, value, rules)), None)
        if chosen is None:
            raise DataError(f"Did not find matching oneof field for data: {value!r}")
        return {chosen.name: _read(chosen.schema, value, rules)}
    if not isinstance(value, dict):
        raise _refused(schema, value)
    return {one.name: _read(one.schema, value.get(one.name), rules) for one in schema.fields}


def _fits(schema: ConnectSchema, value: Any, rules: _Rules) -> bool:
    """Whether a union's branch is what a value is of."""
    if schema.type is SchemaType.STRUCT and isinstance(value, dict):
        return value.keys() <= {one.name for one in schema.fields}
    try:
        _read(schema, value, rules)
    except DataError:
        return False
    return True


def _read_decimal(schema: ConnectSchema, value: Any, rules: _Rules) -> Decimal:
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Decimal(str(value))
    scale = schema.parameters.get(SCALE, "0")
    if not scale.lstrip("-").isdecimal():
        raise DataError(f"Invalid scale parameter found in Decimal schema: {scale}")
    return decimal_of(_read_bytes(schema, value, rules), int(scale))


def _read_moment(schema: ConnectSchema, value: Any, rules: _Rules) -> Any:
    number = _read_whole(schema, value, rules)
    try:
        if schema.name == DATE:
            return _DAY + timedelta(days=number)
        if schema.name == TIME:
            if not 0 <= number < 86_400_000:
                raise OverflowError
            return (_INSTANT + number * _MS).time()
        return _INSTANT + number * _MS
    except OverflowError:
        raise DataError(f"{number} is out of the range of {schema.name}") from None


_READERS: Final[Mapping[str, Any]] = {
    DECIMAL: _read_decimal,
    DATE: _read_moment,
    TIME: _read_moment,
    TIMESTAMP: _read_moment,
}
_TYPES: Final[Mapping[SchemaType, Any]] = {
    **dict.fromkeys(_WHOLE, _read_whole),
    **dict.fromkeys(_FLOATS, _read_float),
    SchemaType.BOOLEAN: _read_same,
    SchemaType.STRING: _read_same,
    SchemaType.BYTES: _read_bytes,
    SchemaType.ARRAY: _read_array,
    SchemaType.MAP: _read_map,
    SchemaType.STRUCT: _read_struct,
}


def _text64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def shown(value: Any) -> str:
    """A value as text: strings as they are, booleans and null as Java writes them, others as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text64(bytes(value))
    return json_bytes(_free(value, numeric=True)).decode()


def json_bytes(value: Any) -> bytes:
    """The bytes of what `to_json` gave. Raises `DataError`: nested too deep, or a text or a number without a form."""
    try:
        return orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise DataError(f"no form in JSON: {error}") from None
