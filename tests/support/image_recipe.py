"""A recipe of images (Containerfile), read: its stages and their steps."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "deploy/image/Containerfile"


@dataclass(frozen=True)
class Step:
    """`RUN apt-get update`, say: the word, its options (`{"from": "build"}`), and the rest as it stands."""

    word: str
    options: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The rest: a list of JSON, or words of a shell."""
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


@dataclass
class Stage:
    """One `FROM`: another stage's name or an image, and the steps over it."""

    name: str
    base: str
    steps: list[Step] = field(default_factory=list)

    def last(self, word: str) -> Step:
        """The step that counts, of those with this word."""
        return [step for step in self.steps if step.word == word][-1]


def stages(text: str) -> dict[str, Stage]:
    """The stages of a recipe by name, in their order; arguments that have defaults are filled in."""
    arguments: dict[str, str] = {}
    found: dict[str, Stage] = {}
    for step in steps(text):
        if step.word == "FROM":
            base, _, name = step.words
            named = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], base)
            stage = found[name] = Stage(name, named)
        elif step.word == "ARG" and not found:
            name, _, arguments[name] = step.rest.partition("=")
        else:
            stage.steps.append(step)
    return found


def steps(text: str) -> Iterator[Step]:
    """The steps of a recipe. Comments are left out, also those between the lines of a step."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        word, *rest = re.split(r"\s+", line.strip(), maxsplit=1)
        if word:
            options = {}
            text = "".join(rest)
            while found := re.match(r"--([\w-]+)=(\S+)\s+", text):
                options[found[1]] = found[2]
                text = text[found.end() :]
            yield Step(word, options, text)


def environment_of(step: Step) -> dict[str, str]:
    """The variables of an ENV."""
    return dict(word.split("=", 1) for word in step.words)


def steps_of(recipe: Mapping[str, Stage], name: str) -> Sequence[Step]:
    """All steps of a stage, those of the stages below it first."""
    stage = recipe[name]
    return [*(steps_of(recipe, stage.base) if stage.base in recipe else ()), *stage.steps]
