"""The schemas that one needs, each with what it needs itself."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

# (the name under which a schema is referenced, its subject, its version)
ReferencedVersion: TypeAlias = tuple[str, str, int]


def texts_of(
    references: Iterable[ReferencedVersion],
    read: Callable[[ReferencedVersion], tuple[str, Iterable[ReferencedVersion]]],
) -> dict[str, str]:
    """{name: text} of all schemas that one needs, those that others need first; of two of one name the first counts.

    `read`: gives a schema's text and references, and is called once for each.
    """
    texts: dict[str, str] = {}
    begun: set[ReferencedVersion] = set()
    stack: list[tuple[ReferencedVersion, str | None]] = [(one, None) for one in reversed(tuple(references))]
    while stack:
        reference, text = stack.pop()
        if text is not None:
            texts.setdefault(reference[0], text)
        elif reference not in begun:
            begun.add(reference)
            text, inner = read(reference)
            stack.append((reference, text))
            stack += [(one, None) for one in reversed(tuple(inner))]
    return texts
