"""Words that prose does without: pronouns for actors, and everyday words in a sense of our own.

A reader of another first language looks for the actor (the writer, a reader, the leader, the caller) and for the term
of the field. The rule looks at pages of Markdown, at docstrings and comments of Python, and at the product's texts
(messages, help).
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tidy_source import Source

# After a word for a person the pronoun is plain English.
_PEOPLE = r"(?<!person )(?<!people )(?<!engineer )(?<!operator )(?<!operators )(?<!user )(?<!users )"
# (what is found, what to write)
WORDS = tuple(
    (re.compile(pattern, re.IGNORECASE), instead)
    for pattern, instead in (
        (r"\b(?:nobody|somebody|anybody|everybody|whoever)\b", "name the actor: writer, reader, leader, caller"),
        (rf"{_PEOPLE}\bwho\b", "name the actor, or write that"),
        (r"\btold\b|\btells? of\b", "notified, reported, configured, given"),
        (r"\bwhat\b[^.;:]*\b(?:comes?|came) to\b", "the result, the state, the outcome"),
        (r"\bso (?:many|manieth|often)\b", "give the number or the name of it"),
        (r"\b(?:another|one|each|earlier|next|a later) li(?:fe|ves) of\b", "topic incarnation, topic id"),
        (
            r"\b(?:lies?|lying|stands?|standing) (?:in|on|at|above|after|before|behind|below|past|right|there|twice"
            r"|under|where)\b",
            "is, is stored",
        ),
        (r"\bsleepers?\b|\bslept\b", "frozen, paused"),
        (r"\bcarr(?:y|ies|ied|ying) (?:it |them )?out\b", "execute, apply"),
        (r"\bsigns? of life\b", "heartbeat"),
        (r"\bas whom\b", "name the identity: member, transactional id"),
        (r"\banew\b", "again"),
    )
)

Complaints = Iterator[tuple[int, str]]


def complaints(lines: list[tuple[int, str]]) -> Complaints:
    """(line, complaint) for each word that does not belong there."""
    for number, line in lines:
        for pattern, instead in WORDS:
            for found in pattern.finditer(line):
                yield number, f"{found[0]!r}: {instead}"


def prose_of_page(text: str) -> list[tuple[int, str]]:
    """The lines of a Markdown page, its blocks of code, code in sentences and addresses of links blanked."""
    for pattern in (r"^```.*?^```$", r"`[^`\n]+`", r"\]\([^)\n]*\)"):
        text = re.sub(pattern, lambda found: re.sub(r"\S", " ", found[0]), text, flags=re.MULTILINE | re.DOTALL)
    return list(enumerate(text.splitlines(), 1))


def prose_of_source(source: Source) -> list[tuple[int, str]]:
    """The lines of a Python file's docstrings and comments; and its other texts where it is installed."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)  # type: ignore[attr-defined]
        for node in source.nodes
        if isinstance(node, documented) and ast.get_docstring(node, clean=False)
    }
    found: list[tuple[int, str]] = []
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (source.module or id(node) in docstrings):
            found += enumerate(node.value.splitlines(), node.lineno)
    found += _comments(source.text)
    return [(line, re.sub(r"`[^`]+`", " ", text)) for line, text in found]


def _comments(text: str) -> list[tuple[int, str]]:
    """The comments, where there is a complaint behind any `#`: to tokenize takes longer than all else here."""
    behind = [(number, line.partition("#")[2]) for number, line in enumerate(text.splitlines(), 1) if "#" in line]
    if not any(complaints(behind)):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
