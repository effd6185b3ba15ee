"""Rules for a key's value, by Kafka's names for them."""

import re
from collections.abc import Callable
from typing import Any

from tidelog.connect.config.definition import Validator
from tidelog.connect.config.values import ConnectConfigError, invalid_value
from tidelog.log.base.typed_values import Problem
from tidelog.log.config.key_type import KAFKA


def between(least: float | None = None, most: float | None = None) -> Validator:
    """A number from `least` to `most`, each inclusive, None for no bound (Kafka's `Range`); None passes."""

    def check(name: str, value: Any) -> None:
        if value is None:
            return
        if least is not None and value < least:
            raise invalid_value(name, value, KAFKA[Problem.TOO_LOW].format(low=least))
        if most is not None and value > most:
            raise invalid_value(name, value, KAFKA[Problem.TOO_HIGH].format(high=most))

    return check


def one_of(*allowed: str, any_case: bool = False) -> Validator:
    """One of some texts (Kafka's `ValidString`); None passes where None is one of them."""
    accepted = {one.lower() if any_case else one for one in allowed}

    def check(name: str, value: Any) -> None:
        if (value.lower() if any_case and value is not None else value) not in accepted:
            raise invalid_value(name, value, KAFKA[Problem.NO_NAME].format(names=", ".join(allowed)))

    return check


def non_empty(name: str, value: Any) -> None:
    """A text or a list with something in it (Kafka's `NonEmptyString`); None passes."""
    if value is not None and not value:
        raise invalid_value(name, value, "String must be non-empty")


def pattern(name: str, value: Any) -> None:
    """A regular expression; None passes."""
    try:
        re.compile(value or "")
    except re.error as error:
        raise invalid_value(name, value, f"Invalid regular expression: {error}") from None


def all_of(*validators: Validator) -> Validator:
    """Every one of some rules (Kafka's `CompositeValidator`)."""

    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return check


def read_by(read: Callable[[str], object]) -> Validator:
    """A text that a function takes: its `ValueError` or `ConnectConfigError` is the reason; None passes."""

    def check(name: str, value: Any) -> None:
        if value is None:
            return
        try:
            read(value)
        except (ValueError, ConnectConfigError) as error:
            raise invalid_value(name, value, str(error)) from None

    return check
