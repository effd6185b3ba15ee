"""A refusal is raised from one frame; any other error keeps its way."""

import logging
import traceback
from collections.abc import Iterator
from io import StringIO

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow


@pytest.fixture
def lines():
    """What is logged, with exceptions. pytest's own lines have none once it has met a logger of PySpark's."""
    handler, logger = logging.StreamHandler(StringIO()), logging.getLogger("tidelog")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.stream
    logger.setLevel(level)
    logger.removeHandler(handler)


def deep(error: Exception, depth: int = 5) -> None:
    if depth:
        deep(error, depth - 1)
    try:
        raise OSError("beneath")
    except OSError as e:
        raise error from e


@shallow
def refuse(error: Exception) -> None:
    """A function that fails."""
    deep(error)


@shallow
def refuse_later(error: Exception) -> Iterator[int]:
    """A generator that fails after its first item."""
    yield 1
    deep(error)


@pytest.mark.parametrize("function", [refuse, lambda error: list(refuse_later(error))])
def test_a_refusal_is_raised_from_one_frame(function, lines):
    with pytest.raises(InvalidOptionError) as raised:
        function(InvalidOptionError("no"))
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [frame.name for frame in frames if frame.filename != __file__] == [frames[-1].name]
    assert "deep" not in [frame.name for frame in frames]
    assert "beneath" not in "".join(traceback.format_exception(raised.value))
    assert "beneath" in lines.getvalue()


def test_another_error_keeps_its_way():
    with pytest.raises(ValueError, match="no") as raised:
        refuse(ValueError("no"))
    assert "deep" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert isinstance(raised.value.__cause__, OSError)


def test_results_pass():
    assert shallow(lambda x: x + 1)(1) == 2
    assert list(shallow(lambda: (n for n in (1, 2)))()) == [1, 2]
    assert refuse.__doc__ == "A function that fails."
