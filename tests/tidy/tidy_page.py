"""What the files of the console's page must keep: text stays text, styles are classes, nothing is fetched elsewhere."""

import posixpath
import re
from collections.abc import Collection, Iterator

from tidy_rules import MAX_FILE_LINES

PAGE = "platform/tidelog/console/page"
# Others' files, as they were published.
VENDORED = f"{PAGE}/uplot/"

_FORBIDDEN = (
    (r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment)\b", "markup made of text"),
    (r"\bdocument\.write|\beval\(|\bnew Function\b", "code made of text"),
    (r"\.style\b|cssText|[\"']style[\"']\s*[,:]|<[^>]*\sstyle=", "a style of one element: use a class"),
    (r"<[^>]*\son\w+=", "a script of one element: use addEventListener"),
    (r"<script(?![^>]*\bsrc=)[^>]*>|<style\b", "a script or style in the page: the policy refuses it"),
    (r"(?:https?:)?//(?!www\.w3\.org/)[\w.-]+\.\w+/|@import|url\((?!data:)", "another host, or a file of its own"),
)
_IMPORT = re.compile(r"""^import .*?from "([^"]+)";$""", re.MULTILINE)


def complaints_of(path: str, text: str, files: Collection[str]) -> Iterator[str]:
    """What is wrong with a file of the page. `files`: every path that is there."""
    lines = text.splitlines()
    if len(lines) > MAX_FILE_LINES:
        yield f"{path} has {len(lines)} lines, over {MAX_FILE_LINES}"
    for number, line in enumerate(lines, 1):
        for pattern, why in _FORBIDDEN:
            if re.search(pattern, line):
                yield f"{path}:{number}: {why}: {line.strip()[:80]}"
    for imported in _IMPORT.findall(text):
        if posixpath.normpath(f"{posixpath.dirname(path)}/{imported}") not in files:
            yield f"{path}: imports {imported}, which is not there"
