"""Refusals that stand alone: tidelog's own errors without the way that they came.

Spark prints the stack of its Python worker above an error's message, twice, and a message of one line below twenty of
others is not read. The logger "tidelog" gets the whole traceback at DEBUG. Errors that are not tidelog's keep theirs.
"""

import logging
from collections.abc import Callable, Generator
from functools import wraps
from inspect import isgenerator
from typing import Any, ParamSpec, TypeVar, cast

from tidelog.log.base.errors import TidelogError

logger = logging.getLogger("tidelog")

P = ParamSpec("P")
R = TypeVar("R")


def shallow(function: Callable[P, R]) -> Callable[P, R]:
    """The function, or the generator, with its refusals raised from one frame, without a cause or a context."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = function(*args, **kwargs)
        except TidelogError as e:
            refusal = _bare(e)
        else:
            return cast(R, _each(result)) if isgenerator(result) else result
        raise refusal

    return call


def _each(items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    try:
        return (yield from items)
    except TidelogError as e:
        refusal = _bare(e)
    raise refusal


def _bare(refusal: TidelogError) -> TidelogError:
    logger.debug("Refused:", exc_info=refusal)
    refusal.__cause__ = refusal.__context__ = None
    return refusal.with_traceback(None)
