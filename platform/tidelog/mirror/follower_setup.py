"""How a lake becomes the follower of another one, and which of its tables are no beginning of the source's."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.log.base.errors import LakeFollowsError, TidelogError
from tidelog.log.config.lake_file import Follows
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Storage
from tidelog.mirror.checkpoint_start import table_id
from tidelog.mirror.tables import Rank, rank
from tidelog.mirror.truncation import note_diverged, written_beside


class NotItsFollowerError(TidelogError):
    """A lake can't follow another one: it holds tables of its own, or follows a third."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lakes before one follows the other: their addresses, whom they follow, and the ids of their tables."""

    source: str
    follower: str
    source_follows: Follows | None
    follower_follows: Follows | None
    source_tables: Mapping[str, str | None]
    follower_tables: Mapping[str, str | None]


def require_adoptable(pair: Pair) -> None:
    """Raise `NotItsFollowerError` unless the follower may follow the source.

    It may when it holds nothing, when it does so already, and when all tables of its own are the source's: it was the
    source once. Else a slip of the pen stops a lake that programs write to.
    """
    if pair.source == pair.follower:
        raise NotItsFollowerError(f"The lake {pair.source} can't follow itself: give two addresses.")
    if pair.source_follows is not None and pair.source_follows.source == pair.follower:
        raise NotItsFollowerError(
            f"{pair.source} follows {pair.follower} itself. Promote it first ('tidelog mirror promote'), or give the"
            " two the other way round."
        )
    follows = pair.follower_follows
    if follows is not None and follows.promoting:
        raise NotItsFollowerError(
            f"{pair.follower} is being made a lake of its own: 'tidelog mirror promote' was begun there. Finish it"
            " first."
        )
    if follows is not None and follows.source != pair.source:
        raise NotItsFollowerError(
            f"{pair.follower} follows {follows.source}, not {pair.source}. Promote it first, or give it an address of"
            " its own."
        )
    if follows is not None:
        return
    strange = sorted(
        name for name, own in pair.follower_tables.items() if own is None or own != pair.source_tables.get(name)
    )
    if strange:
        raise NotItsFollowerError(
            f"{pair.follower} holds tables that are not those of {pair.source}: {', '.join(strange[:10])}"
            + (f" and {len(strange) - 10} more" if len(strange) > 10 else "")
            + ". A follower refuses every writer, so a lake with tables of its own does not become one. Give an address"
            " without a lake; or delete what is there, if no reader needs it."
        )


def adopt(source: Lake, follower: Lake) -> None:
    """Have a lake follow another one. Raises `NotItsFollowerError`, `LakeNotFoundError`, `StorageError`."""
    source.require_lake()
    source.reload_config()
    follower.ensure_lake()
    follower.reload_config()
    follows = follower.follows()
    pair = Pair(
        source.uri,
        follower.uri,
        source.follows(),
        follows,
        {} if follows else _tables(source.storage),
        {} if follows else _tables(follower.storage),
    )
    require_adoptable(pair)
    if follows is None:
        found = {one.table: one for one in written_beside(source.storage, follower.storage)}
        note_diverged(follower.storage, found)
        follower.follow(Follows(source.uri))


def require_follower(source: Lake, follower: Lake, *, promoting: bool = False) -> None:
    """Raise `LakeFollowsError` unless the follower follows the source, and no other process promotes it."""
    follower.reload_config()
    follows = follower.follows()
    if follows is None or follows.source != source.uri:
        says = "follows none" if follows is None else f"follows {follows.source}"
        raise LakeFollowsError(
            f"The lake {follower.uri} does not follow {source.uri}: it {says}. Another program changed that, as a"
            " promotion does. The mirror stops."
        )
    if follows.promoting and not promoting:
        raise LakeFollowsError(
            f"The lake {follower.uri} is being made a lake of its own: the mirror stops. Where that was not finished,"
            " 'tidelog mirror promote' goes on with it."
        )


def _tables(storage: Storage) -> dict[str, str | None]:
    """{table: its id} of what a mirror ships of a lake."""
    tables: dict[str, str | None] = {}
    for name in storage.list_folders(""):
        ranked: Rank | None = rank(name)
        if ranked is not None and layout.LOG_FOLDER in storage.list_folders(name):
            tables[name] = table_id(storage, name)
    return tables
