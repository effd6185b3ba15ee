"""Functions of records: SQL, Spark's columns, or Python."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import DataType, Row

from tidelog.log.base.errors import InvalidOptionError


@dataclass(frozen=True)
class PythonFunction:
    """A Python function of values, and the type of what it gives; see `python`."""

    work: Callable[..., Any]
    returns: str | DataType


# SQL text, a column, a function of columns that gives a column, or a function in Python.
Expression = str | Column | Callable[..., Column] | PythonFunction


def python(work: Callable[..., Any], returns: str | DataType = "string") -> PythonFunction:
    """A Python function to use where Spark's columns don't suffice, called for each record in Spark's workers.

    `returns`: the type of what it gives, as in Spark's DDL ("long", "struct<page: string, seconds: int>"). A struct
    is a dict in Python, both ways.
    """
    return PythonFunction(work, returns)


def column_of(given: Expression, columns: Mapping[str, Column], *, taken: Sequence[Sequence[str]]) -> Column:
    """What an expression gives for each record.

    SQL names the record's columns. A function is called with those of `taken` that have as many names as it has
    parameters: `value`, or `key` and `value`.
    """
    if isinstance(given, str):
        return F.expr(given)
    if isinstance(given, Column):
        return given
    work = given.work if isinstance(given, PythonFunction) else given
    count = parameters(work)
    names = next((names for names in taken if len(names) == count), None)
    if names is None:
        wanted = " or ".join(f"({', '.join(one)})" for one in taken)
        raise InvalidOptionError(
            f"A function with {count} parameters was given where a record has {wanted}: take one of these."
        )
    arguments = [columns[name] for name in names]
    if isinstance(given, PythonFunction):
        return _called(given, arguments)
    made = work(*arguments)
    if not isinstance(made, Column):
        raise InvalidOptionError(
            f"A function gave {type(made).__name__} where a column is wanted: functions take and give Spark's columns."
            " Write streams.python(function, returns='...') for one that takes and gives Python's values."
        )
    return made


def parameters(work: Callable[..., Any]) -> int:
    """How many arguments a function is called with; builtins that don't tell take one."""
    try:
        arguments = inspect.signature(work).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for one in arguments if one.kind in positional and one.default is inspect.Parameter.empty) or 1


def plain(value: Any) -> Any:
    """A value without Spark's rows: a struct is a dict."""
    if isinstance(value, Row):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def _called(given: PythonFunction, arguments: Sequence[Column]) -> Column:
    work = given.work

    def call(*values: Any) -> Any:
        return work(*(plain(one) for one in values))

    # What it does may be more than what it gives: Spark must call it once, and must not leave the call out.
    function = F.udf(call, given.returns, useArrow=True).asNondeterministic()
    return function(*arguments)
