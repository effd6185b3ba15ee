"""Policies of IAM, as far as docs/object-stores.md uses them: what they allow, and what of them was needed."""

import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from support.pages import ROOT

ARN = "arn:aws:s3:::"
_BLOCK = re.compile(r"^```json policy ([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented() -> dict[str, str]:
    """The policies of the page by their names, as texts."""
    page = (ROOT / "docs/object-stores.md").read_text(encoding="utf-8")
    return {found[1]: found[2] for found in _BLOCK.finditer(page)}


class Policies:
    """Some policies together, with names put in for their placeholders. Remembers what they were asked for.

    Nothing but what the page needs is known: statements that allow, lists of actions and resources, no conditions.
    """

    def __init__(self, texts: Iterable[str], names: Mapping[str, str]) -> None:
        self.grants: list[tuple[str, str]] = []
        for text in texts:
            for name, value in names.items():
                text = text.replace(name, value)
            policy = json.loads(text)
            assert policy["Version"] == "2012-10-17"
            for statement in policy["Statement"]:
                assert set(statement) == {"Effect", "Action", "Resource"}
                assert statement["Effect"] == "Allow"
                assert all(resource.startswith(ARN) for resource in statement["Resource"])
                self.grants += [
                    (action, resource.removeprefix(ARN))
                    for action in statement["Action"]
                    for resource in statement["Resource"]
                ]
        self.used: set[tuple[str, str]] = set()
        self.denied: list[tuple[str, str]] = []

    def permits(self, action: str, resource: str) -> bool:
        """Whether one of them allows it."""
        granted = [grant for grant in self.grants if grant[0] == action and fnmatchcase(resource, grant[1])]
        self.used.update(granted)
        if not granted:
            self.denied.append((action, resource))
        return bool(granted)

    @property
    def unused(self) -> list[tuple[str, str]]:
        """Grants that no request has needed yet."""
        return [grant for grant in self.grants if grant not in self.used]
