"""The README's parts: its blocks of code, and the calls of `tidelog` in lines for a shell."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"(?:\S*/)?tidelog|-m tidelog")


def blocks(*languages: str) -> list[tuple[str, str]]:
    """(language, code) of the blocks in these languages, in their order."""
    return [(language, code) for language, code in _BLOCK.findall(TEXT) if language in languages]


def tidelog_calls(shell: str) -> list[list[str]]:
    """The arguments of each call of `tidelog` in lines for a shell, pipes and comments aside."""
    calls = []
    for line in shell.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars="|")
        words.whitespace_split = True
        pipeline: list[list[str]] = [[]]
        for word in words:
            pipeline.append([]) if word == "|" else pipeline[-1].append(word)
        calls += [call[1:] for call in pipeline if call and _PROGRAM.fullmatch(call[0])]
    return calls
