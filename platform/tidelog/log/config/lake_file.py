"""A lake's own file, `__lake.json`: the format's version, the configuration that was set, and which lake it follows.

Or of which one it is a branch.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    InvalidConfigError,
    LakeFileLostError,
    LakeFollowsError,
    LakeNotFoundError,
    NotATopicError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedFormatError,
)
from tidelog.log.config.branch_facts import Branch, parse_branch
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.delta import layout
from tidelog.log.delta.disk_format import FORMAT_VERSION, other_format
from tidelog.log.storage.port import Distant, Storage
from tidelog.log.storage.proving import create_first

logger = logging.getLogger("tidelog.log")

# How old what a process knows of a lake's configuration may be. A look is one small request.
LOOK_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Follows:
    """That a lake follows another one: `source` is its address.

    `promoting`: an operator has begun to make it a lake of its own, and no mirror may go on.
    """

    source: str
    promoting: bool = False


class LakeFile:
    """The file of one lake: makes sure that there is a lake, and keeps its configuration.

    `create`: what becomes of a lake that is not there. True creates it at once, False refuses it, None creates it
    with the first thing that is written into it (`ensure`), so that looking creates nothing. Methods may be called
    from many threads: two that look at once learn the same.

    Raises `LakeNotFoundError`, `LakeFileLostError`, `NotATopicError` for a root that is itself a table, and what
    `parse_lake_file` does.
    """

    def __init__(self, storage: Storage, clock: Clock, ids: Ids, create: bool | None) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._config = LakeConfig.parse({})
        self._follows: Follows | None = None
        self._branch: Branch | None = None
        self._data: bytes | None = None
        self._looked_s = float("-inf")
        if self._look():
            return
        folders = storage.list_folders("")
        if layout.LOG_FOLDER in folders:
            raise NotATopicError(
                f"{storage.uri} is a Delta table, not a lake: a lake is a folder of tables. Give the folder above it,"
                " or another one."
            )
        tables = tables_among(storage, folders)
        if tables:
            self._expect(tables)
        elif create:
            self.ensure()
        elif create is False:
            raise self._not_there()

    def config(self) -> LakeConfig:
        """The lake's configuration as it was at most `LOOK_EVERY_S` ago; the defaults before there is a lake.

        While the store gives no answer, or the file holds what can't be used, what was known before counts.
        """
        now_s = self._clock.elapsed_s()
        if self._data is not None and now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            try:
                self._look()
            except (StorageError, InvalidConfigError) as e:
                logger.warning("The lake's configuration could not be read again, and stays as it was. %s", e)
        return self._config

    def follows(self) -> Follows | None:
        """Which lake it follows, None for none: as it was at most `LOOK_EVERY_S` ago."""
        self.config()
        return self._follows

    def branch(self) -> Branch | None:
        """Which lake it is a branch of, None for none: as it was at most `LOOK_EVERY_S` ago."""
        self.config()
        return self._branch

    def require_whole(self) -> None:
        """Refuse a change of a branch that is not whole. Raises `LakeNotWholeError`."""
        branch = self.branch()
        if branch is not None:
            branch.require_whole(self._storage.uri)

    def require_own(self) -> None:
        """Refuse a change of a lake that follows another one, or is no whole branch. Raises `LakeFollowsError`."""
        self.require_whole()
        follows = self._follows
        if follows is not None:
            raise LakeFollowsError(
                f"The lake {self._storage.uri} follows {follows.source}: only its mirror writes to it, so that both"
                " hold the same. Write to that one; or, when it is lost, make this one a lake of its own ('tidelog"
                " mirror promote')."
            )

    def reload(self) -> LakeConfig:
        """The lake's configuration as it is now, which counts from then on. Raises as opening does."""
        if not self._look():
            raise self._not_there()
        return self._config

    def require(self) -> None:
        """Refuse to look into a lake that is not there. Raises `LakeNotFoundError`."""
        if self._data is None:
            self.reload()

    def ensure(self) -> None:
        """Create the lake unless it is there: whatever writes the first thing into a lake calls this before."""
        if self._data is None and not self._look():
            create_first(self._storage, layout.LAKE_FILE, lake_file({}), self._ids)
            self.reload()

    def replace(self, config: LakeConfig) -> None:
        """Store another configuration, so that it survives a power loss."""
        self._store(config.overrides, self._follows, self._branch)

    def begin_branch(self, branch: Branch, overrides: Mapping[str, str]) -> bool:
        """Create the lake as a branch that is being made; False where a lake is there. Raises `UnsafeStoreError`."""
        created = create_first(self._storage, layout.LAKE_FILE, lake_file(overrides, branch=branch), self._ids)
        self.reload()
        return created

    def note_branch(self, branch: Branch) -> None:
        """Store how far a branch is made, so that it survives a power loss. The lake is there."""
        self._store(self.reload().overrides, self._follows, branch)

    def follow(self, follows: Follows | None) -> None:
        """Store which lake it follows, None for none, so that it survives a power loss. The lake is there."""
        self._store(self.reload().overrides, follows, self._branch)

    def _store(self, overrides: Mapping[str, str], follows: Follows | None, branch: Branch | None) -> None:
        self._storage.put(layout.LAKE_FILE, lake_file(overrides, follows, branch))
        self._storage.sync([layout.LAKE_FILE])
        self.reload()

    def _look(self) -> bool:
        """Whether the file is there; what it says counts from then on."""
        try:
            data = self._storage.get(layout.LAKE_FILE)
        except ObjectNotFoundError:
            return False
        if data != self._data:
            found, uri = parse_lake_file(data, self._storage.uri), self._storage.uri
            self._follows, self._branch = parse_follows(data, uri), parse_branch(data, uri)
            self._config, self._data = found, data
        self._looked_s = self._clock.elapsed_s()
        return True

    def _expect(self, tables: Sequence[str]) -> None:
        """Look again for the file of a lake that has tables: another process may be making it just now."""
        if not self._look():
            named = f"'{tables[0]}'" + (f" and {len(tables) - 1} more" if len(tables) > 1 else "")
            raise LakeFileLostError(
                f"{self._storage.uri} holds tables ({named}) and no {layout.LAKE_FILE}: the lake's own file is lost,"
                " and with it the lake's configuration. Restore it from a copy; or have one with the defaults written"
                " ('tidelog check --repair --execute'), and set the configuration again ('tidelog lake alter'). If this"
                " is no lake, give another folder."
            )

    def _not_there(self) -> LakeNotFoundError:
        uri = self._storage.uri
        return LakeNotFoundError(
            f"There is no lake at {uri} (no {layout.LAKE_FILE}). Check the address, or create it:"
            f" tidelog.Lake({uri!r}, create=True), 'tidelog topic create'."
        )


def lake_file(overrides: Mapping[str, str], follows: Follows | None = None, branch: Branch | None = None) -> bytes:
    """The file of a lake with this configuration, which follows another one or none, and is a branch or none."""
    body: dict[str, Any] = {"format": FORMAT_VERSION, "config": overrides}
    if follows is not None:
        body["follows"] = {"lake": follows.source} | ({"promoting": True} if follows.promoting else {})
    if branch is not None:
        body |= branch.to_json()
    return orjson.dumps(body)


def parse_follows(data: bytes, uri: str) -> Follows | None:
    """Which lake the one at `uri` follows, by its file; None for none. Raises `UnsupportedFormatError`."""
    follows = orjson.loads(data).get("follows")
    if follows is None:
        return None
    try:
        source, promoting = follows["lake"], follows.get("promoting", False)
    except (KeyError, TypeError, AttributeError):
        source = promoting = None
    if not isinstance(source, str) or not isinstance(promoting, bool):
        raise UnsupportedFormatError(
            f"{uri}/{layout.LAKE_FILE} does not say which lake it follows, and has 'follows'. Restore it from a copy,"
            ' or write {"lake": <the source\'s address>} there.'
        )
    return Follows(source, promoting)


def parse_lake_file(data: bytes, uri: str) -> LakeConfig:
    """The configuration that the file of the lake at `uri` holds.

    Raises `UnsupportedFormatError` and `InvalidConfigError`.
    """
    where = f"{uri}/{layout.LAKE_FILE}"
    try:
        body = orjson.loads(data)
        version, config = int(body["format"]), dict(body.get("config") or {})
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UnsupportedFormatError(
            f"{where} is not what tidelog writes there ({e!r}). Restore it from a copy, or write"
            f' {{"format": {FORMAT_VERSION}, "config": {{}}}} into it and set the lake\'s configuration again.'
        ) from e
    if version != FORMAT_VERSION:
        raise UnsupportedFormatError(" ".join(other_format(f"The lake at {uri}", version)))
    try:
        return LakeConfig.parse(config)
    except InvalidConfigError as e:
        raise InvalidConfigError(f"{where}: {e} Correct it in that file.") from e


def tables_among(storage: Storage, folders: Sequence[str]) -> list[str]:
    """Those of the root's folders that hold a Delta log."""
    look = storage.helpers().map if isinstance(storage, Distant) else map
    found = zip(folders, look(storage.list_folders, folders), strict=True)
    return [name for name, below in found if layout.LOG_FOLDER in below]
