"""What a branch takes of a table, and whether a lake may become a branch: pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.log.base.errors import TidelogError
from tidelog.log.config.branch_facts import Branch
from tidelog.mirror.plan import ShippedEntry


class NotABranchError(TidelogError):
    """A lake can't become a branch, or is none."""


class OutOfReachError(TidelogError):
    """A branch is asked for of a time that the lake's logs don't reach back to any more."""


@dataclass(frozen=True, slots=True)
class TableFiles:
    """What a branch takes of a table at `version`, by paths below the lake's root.

    `floor`: the newest version that it does not have, -1 for none. `log`: a checkpoint and the entries from it on.
    `files`: with their bytes, what any version from the checkpoint on names. `live`: those that `version` itself names.
    """

    table: str
    version: int
    floor: int
    log: tuple[str, ...]
    files: Mapping[str, int]
    live: frozenset[str]


def files_at(base: Mapping[str, int], entries: Iterable[ShippedEntry]) -> tuple[dict[str, int], frozenset[str]]:
    """All files that a checkpoint, whose files are `base`, or an entry since names; and those that are live at the end.

    By path, with their bytes. What time travel reaches in the source, it then reaches in the branch.
    """
    files, live = dict(base), dict(base)
    for entry in entries:
        for added in (entry.adds, entry.strange):
            files |= added
        live |= entry.adds
        for path in entry.removes:
            live.pop(path, None)
    return files, frozenset(live)


def scratch_address(uri: str, unique: str) -> str:
    """An address beside a lake's, in the same folder, bucket or container. Raises `NotABranchError` where none is.

    >>> scratch_address("file:///data/lake", "4f6c6f1e"), scratch_address("memory://tests", "4f6c6f1e")
    ('file:///data/lake-branch-4f6c6f1e', 'memory://tests-branch-4f6c6f1e')
    """
    scheme, _, path = uri.partition("://")
    if scheme != "memory" and not path.partition("/")[2]:
        raise NotABranchError(
            f"The lake {uri} has all of its bucket: no address is beside it. Give the branch's address."
        )
    return f"{uri}-branch-{unique}"


def require_branchable(target: str, source: str, cut: str, there: Branch | None) -> Branch:
    """What is said of the branch at `target`, which is there already, so that its making goes on.

    `cut`: the name of the cut that is asked for, "" for none. Raises `NotABranchError` for any other lake.
    """
    if there is None:
        raise NotABranchError(
            f"There is a lake at {target}, and it is no branch. A branch needs an address without a lake: give another"
            " one."
        )
    if there.is_whole:
        raise NotABranchError(
            f"There is a branch of {there.of} at {target} already, and programs may write to it. Give another address;"
            f" or discard it first, with all that was written there ('tidelog lake branch --discard {target}')."
        )
    if there.discarding:
        raise NotABranchError(
            f"The branch at {target} is being discarded. End that first ('tidelog lake branch --discard {target}')."
        )
    if (there.of, there.cut) != (source, cut):
        made_of = f"{there.of} at the cut {there.cut!r}" if there.cut else there.of
        raise NotABranchError(
            f"The branch at {target} is being made of {made_of}, and not of what is asked for. Call it as it was"
            f" called; or give it up ('tidelog lake branch --discard {target}')."
        )
    return there


def require_discardable(target: str, there: Branch | None) -> Branch:
    """What is said of the branch at `target`. Raises `NotABranchError` for a lake that is none."""
    if there is None:
        raise NotABranchError(
            f"The lake {target} is no branch, so nothing of it is discarded. Delete its topics ('tidelog topic"
            " delete'), or the folder, if no program needs it."
        )
    return there
