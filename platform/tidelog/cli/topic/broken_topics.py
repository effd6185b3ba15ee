"""Going through the topics of a lake: one that is broken is named, and hides no other."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import typer

from tidelog.commands.failures import FAILED, complain
from tidelog.log.base.errors import TidelogError, UnknownTopicError

R = TypeVar("R")


def each_topic(names: Iterable[str], look: Callable[[str], R]) -> dict[str, R | TidelogError]:
    """What a look at each topic finds, or why it fails; topics that are deleted meanwhile are left out.

    Raises errors that go away by themselves, such as those of a store that gives no answer.
    """
    found: dict[str, R | TidelogError] = {}
    for name in names:
        try:
            found[name] = look(name)
        except UnknownTopicError:
            continue
        except TidelogError as e:
            if e.retriable:
                raise
            found[name] = e
    return found


def tell_broken(found: Mapping[str, object], *, as_json: bool) -> None:
    """Say which topics could not be opened and why. Raises `typer.Exit` with the code of a failure if any."""
    broken = {name: e for name, e in found.items() if isinstance(e, TidelogError)}
    for name, error in broken.items():
        complain(error, about=f"Topic '{name}' can't be opened. ", as_json=as_json)
    if broken:
        raise typer.Exit(FAILED)
