"""Keywords with a number as their value: added, removed, increased, decreased."""

from collections.abc import Iterator, Mapping

from tidelog.schemas.base.comparison import Difference
from tidelog.schemas.base.json_text import Json
from tidelog.schemas.json_schema.rules import RULES


def limits(
    old: Mapping[str, Json], new: Mapping[str, Json], keywords: tuple[tuple[str, str], ...]
) -> Iterator[Difference]:
    """Differences of keywords, each given with the name that its rules begin with."""
    for key, name in keywords:
        yield from limit(old.get(key), new.get(key), key, name)


def limit(before: Json, after: Json, key: str, name: str) -> Iterator[Difference]:
    """The difference of one keyword's values, None where the keyword is not there."""
    if before == after:
        return
    if before is None:
        what = "ADDED"
    elif after is None:
        what = "REMOVED"
    else:
        what = "INCREASED" if after > before else "DECREASED"
    yield Difference(RULES[f"{name}_{what}"], (key,))
