"""A lake's own file, `__lake.json`: the format's version, and the configuration that somebody set."""

from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from tidelog.log import layout
from tidelog.log.config import LakeConfig
from tidelog.log.errors import InvalidConfigError, UnsupportedFormatError
from tidelog.log.storage.port import Distant, Storage

LAKE_FORMAT: Final = 1


def lake_file(overrides: Mapping[str, str]) -> bytes:
    """The file of a lake with this configuration."""
    return orjson.dumps({"format": LAKE_FORMAT, "config": overrides})


def read_lake_config(storage: Storage) -> LakeConfig:
    """The lake's configuration as it is now.

    Raises `ObjectNotFoundError` where there is no lake, `UnsupportedFormatError` and `InvalidConfigError`.
    """
    where = f"{storage.uri}/{layout.LAKE_FILE}"
    data = storage.get(layout.LAKE_FILE)
    try:
        body = orjson.loads(data)
        version, config = int(body["format"]), dict(body.get("config") or {})
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise UnsupportedFormatError(
            f"{where} is not what tidelog writes there ({e!r}). Restore it from a copy, or write"
            f' {{"format": {LAKE_FORMAT}, "config": {{}}}} into it and set the lake\'s configuration again.'
        ) from e
    if version > LAKE_FORMAT:
        raise UnsupportedFormatError(
            f"The lake at {storage.uri} has format version {version}; this tidelog knows versions up to"
            f" {LAKE_FORMAT}. Upgrade tidelog to use it."
        )
    try:
        return LakeConfig.parse(config)
    except InvalidConfigError as e:
        raise InvalidConfigError(f"{where}: {e} Correct it in that file.") from e


def tables_among(storage: Storage, folders: Sequence[str]) -> list[str]:
    """Those of the root's folders that hold a Delta log."""
    look = storage.helpers().map if isinstance(storage, Distant) else map
    found = zip(folders, look(storage.list_folders, folders), strict=True)
    return [name for name, below in found if layout.LOG_FOLDER in below]
