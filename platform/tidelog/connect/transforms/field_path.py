"""Which field a transformation means: Kafka's field paths (KIP-821).

Version 1 takes the whole text as the name of one field. Version 2 separates the steps of a path by dots; backticks wrap
a step whose name has dots.
"""

from collections.abc import Sequence
from typing import Final

V1: Final = "V1"
V2: Final = "V2"


def path_steps(path: str, version: str = V1) -> tuple[str, ...]:
    r"""Return the names of the fields from the outermost in.

    A backtick inside a wrapped step is escaped by a backslash where a dot follows it. Raises `ValueError` for a wrapped
    step that never ends.
    """
    return (path,) if version.upper() == V1 else tuple(_steps(path))


def _steps(path: str) -> Sequence[str]:
    steps: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _wrapped(path, at)
        else:
            end = path.find(".", at)
            step, at = (path[at:], len(path)) if end < 0 else (path[at:end], end + 1)
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _wrapped(path: str, backtick: int) -> tuple[str, int]:
    """The step that begins with the backtick at that position, and the position behind its dot."""
    step, start = "", backtick + 1
    end = path.find("`", start)
    while end >= 0:
        escaped = path[end - 1] == "\\"
        last = end == len(path) - 1
        if last and not escaped:
            return step + path[start:end], len(path)
        if not last and path[end + 1] == ".":
            if not escaped:
                return step + path[start:end], end + 2
            step += path[start : end - 1] + "`"
            start = end + 1
        end = path.find("`", end + 1)
    raise ValueError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position "
        f"{backtick} to escape it"
    )
