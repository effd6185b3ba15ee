"""Two schemas compared part by part, without recursion: deep and circular ones end, and within a bound.

A kind of schema gives `compare`, a generator function of two parts: it yields `Ask`s for inner parts, is sent their
differences, and returns its own. A pair of parts is compared once; a pair that is met again while it is being compared
counts as equal, and is compared again with what was found, until nothing changes.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from tidelog.schemas.base.errors import schema_too_large

Part = TypeVar("Part")

# More pairs of parts than real schemas have: 10,000 properties, each compared with a few alternatives. About a second.
MOST_PAIRS = 50_000
# Differences kept of one pair; breaking ones before others.
MOST_DIFFERENCES = 200


@dataclass(frozen=True, slots=True)
class CompatibilityRule:
    """What one kind of change means.

    `compatible`: readers of the new schema read what writers of the old one wrote. `lenient`: so under Confluent's
    compatibility policy LENIENT. `sentence` names {path}, {reader} and {writer}.
    """

    name: str
    compatible: bool
    lenient: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A change that a rule is about, at a place of the schema: `path` from the compared part down, outermost first."""

    rule: CompatibilityRule
    path: tuple[str, ...] = ()
    detail: str = ""

    def below(self, path: tuple[str, ...]) -> "Difference":
        """The same, seen from a part that has the compared one at `path`."""
        return replace(self, path=path + self.path) if path else self

    def breaking(self, *, lenient: bool = False) -> bool:
        """Whether old data may no longer be read."""
        return not (self.rule.lenient if lenient else self.rule.compatible)


Differences: TypeAlias = Sequence[Difference]


@dataclass(frozen=True, slots=True)
class Ask(Generic[Part]):
    """Two inner parts to compare; their differences come back with `path` before their own."""

    old: Part
    new: Part
    path: tuple[str, ...] = ()


Comparing: TypeAlias = Generator[Ask[Part], Differences, Differences]
Compare: TypeAlias = Callable[[Part, Part], Comparing[Part]]


def compared(compare: Compare[Part], old: Part, new: Part, *, lenient: bool = False) -> Differences:
    """All differences of two parts. Parts are the same where `==` says so, and need a hash.

    Raises `RegistryError` 42209 where more than `MOST_PAIRS` pairs of parts would have to be compared.
    """
    breaks: Mapping[tuple[Part, Part], Differences] = {}
    budget = MOST_PAIRS
    while True:
        run = _Comparison(compare, breaks, budget, lenient)
        differences = run.result(old, new)
        broken = {pair: own for pair, own in run.done.items() if any(one.breaking(lenient=lenient) for one in own)}
        if not run.assumed or broken.keys() <= breaks.keys():
            return differences
        breaks = {**breaks, **broken}
        budget = run.budget


class _Comparison(Generic[Part]):
    """One pass: `done` has what was found, `assumed` says whether a pair counted as equal before it was compared."""

    def __init__(
        self, compare: Compare[Part], breaks: Mapping[tuple[Part, Part], Differences], budget: int, lenient: bool
    ) -> None:
        self.done: dict[tuple[Part, Part], Differences] = {}
        self.assumed = False
        self.budget = budget
        self._compare = compare
        self._known = breaks
        self._lenient = lenient

    def result(self, old: Part, new: Part) -> Differences:
        open_pairs = {(old, new)}
        stack = [(Ask(old, new), self._compare(old, new))]
        answer: Differences | None = None
        while stack:
            asked, comparing = stack[-1]
            try:
                ask = next(comparing) if answer is None else comparing.send(answer)
            except StopIteration as end:
                pair = (asked.old, asked.new)
                self.done[pair] = differences = self._kept(end.value)
                open_pairs.discard(pair)
                stack.pop()
                answer = [one.below(asked.path) for one in differences]
                continue
            self._count()
            pair = (ask.old, ask.new)
            if pair in self.done:
                answer = [one.below(ask.path) for one in self.done[pair]]
            elif pair in open_pairs:
                self.assumed = True
                answer = [one.below(ask.path) for one in self._known.get(pair, ())]
            else:
                open_pairs.add(pair)
                stack.append((ask, self._compare(ask.old, ask.new)))
                answer = None
        return answer or ()

    def _count(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise schema_too_large(
                f"The schemas have more than {MOST_PAIRS} pairs of parts to compare. Make them smaller, "
                "or register with compatibility NONE."
            )

    def _kept(self, differences: Differences) -> Differences:
        if len(differences) <= MOST_DIFFERENCES:
            return differences
        return sorted(differences, key=lambda one: not one.breaking(lenient=self._lenient))[:MOST_DIFFERENCES]
