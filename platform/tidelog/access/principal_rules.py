"""Principals of certificates: `ssl.principal.mapping.rules`, with Kafka's syntax (KIP-371).

Rules stand one after another, separated by commas: `RULE:pattern/replacement/` with `L` or `U` at its end for lower or
upper case, and `DEFAULT`, the distinguished name as it is. The first whose pattern is the whole name decides.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidelog.log.base.errors import InvalidConfigError

SETTING: Final = "ssl.principal.mapping.rules"
_DEFAULT: Final = "DEFAULT"
_RULE: Final = "RULE:"
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}
# $1 in a replacement, as Java writes it.
_GROUP: Final = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: str
    case: Callable[[str], str]

    def name(self, distinguished_name: str) -> str | None:
        if self.pattern.fullmatch(distinguished_name) is None:
            return None
        return self.case(self.pattern.sub(self.replacement, distinguished_name, count=1))


class NoPrincipalError(ValueError):
    """No rule is for this name."""


class PrincipalRules:
    """Rules, in order. Raises `InvalidConfigError` for what is none."""

    def __init__(self, rules: str = _DEFAULT) -> None:
        self._rules: Sequence[_Rule | None] = [_parsed(one) for one in _split(rules)] or [None]

    def principal(self, distinguished_name: str) -> str:
        """The principal of a certificate's subject, as RFC 2253 writes it. Raises `NoPrincipalError`."""
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.name(distinguished_name)
            if name is not None:
                return f"User:{name}"
        raise NoPrincipalError(f"No rule of {SETTING} is for {distinguished_name!r}. Add one, or DEFAULT at the end.")


def _split(rules: str) -> Iterator[str]:
    """The rules' texts: a comma between slashes belongs to its rule."""
    rest = rules.strip()
    while rest:
        if rest.startswith(_RULE):
            end = _after_slash(rest, _after_slash(rest, len(_RULE)))
            comma = rest.find(",", end)
        else:
            comma = rest.find(",")
        yield (rest if comma < 0 else rest[:comma]).strip()
        rest = "" if comma < 0 else rest[comma + 1 :].strip()


def _after_slash(text: str, start: int) -> int:
    """The place after the next slash that no backslash escapes; the end where there is none."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "/":
            return at + 1
        at += 1
    return len(text)


def _parsed(text: str) -> _Rule | None:
    if text == _DEFAULT:
        return None
    middle = _after_slash(text, len(_RULE))
    end = _after_slash(text, middle)
    pattern, replacement, case = text[len(_RULE) : middle - 1], text[middle : end - 1], text[end:].strip()
    if not text.startswith(_RULE) or text[end - 1 : end] != "/" or end == middle or case not in _CASES:
        raise InvalidConfigError(
            f"{SETTING}: {text!r} is no rule. Write RULE:pattern/replacement/, with L or U at its end, or DEFAULT."
        )
    try:
        compiled = re.compile(pattern)
        template = _GROUP.sub(r"\\g<\1>", replacement)
        re.compile("|".join(["", pattern])).sub(template, "")
    except (re.error, IndexError) as e:
        raise InvalidConfigError(f"{SETTING}: {text!r} is no rule: {e}.") from e
    return _Rule(compiled, template, _CASES[case])
