"""Rules of a connector of one's own for its keys' values, by Kafka's names for them: what `ConfigDef.define` takes."""

import math
from collections.abc import Callable
from typing import Any

from tidelog.connect.config.definition import Validator
from tidelog.connect.config.values import PATTERN, invalid_value, parsed, read_as
from tidelog.log.base.typed_values import Choice, Number, ValueKind


def between(least: float | None = None, most: float | None = None) -> Validator:
    """A number from `least` to `most`, each inclusive, None for no bound (Kafka's `Range`); None passes."""
    return _unless_none(Number(-math.inf if least is None else least, math.inf if most is None else most))


def one_of(*allowed: str, any_case: bool = False) -> Validator:
    """One of some texts (Kafka's `ValidString`)."""
    kind = Choice(dict.fromkeys(allowed), any_case)
    return lambda name, value: parsed(name, value, kind)


def non_empty(name: str, value: Any) -> None:
    """A text or a list with something in it (Kafka's `NonEmptyString`); None passes."""
    if value is not None and not value:
        raise invalid_value(name, value, "String must be non-empty")


def pattern(name: str, value: Any) -> None:
    """A regular expression; None passes."""
    _unless_none(PATTERN)(name, value)


def all_of(*validators: Validator) -> Validator:
    """Every one of some rules (Kafka's `CompositeValidator`)."""

    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return check


def read_by(read: Callable[[str], object]) -> Validator:
    """A text that a function takes: its `ValueError` or `ConnectConfigError` is the reason; None passes."""
    return _unless_none(read_as(read))


def _unless_none(kind: ValueKind[Any]) -> Validator:
    return lambda name, value: None if value is None else parsed(name, value, kind)
