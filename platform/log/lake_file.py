"""A lake's own file, `__lake.json`: the format's version, and the configuration that somebody set."""

from collections.abc import Mapping
from typing import Final

import orjson

from tidelog.log import layout
from tidelog.log.config import LakeConfig
from tidelog.log.errors import InvalidConfigError, UnsupportedFormatError
from tidelog.log.storage.port import Storage

LAKE_FORMAT: Final = 1


def lake_file(overrides: Mapping[str, str]) -> bytes:
    """The file of a lake with this configuration."""
    return orjson.dumps({"format": LAKE_FORMAT, "config": overrides})


def read_lake_config(storage: Storage) -> LakeConfig:
    """The lake's configuration as it is now.

    Raises `ObjectNotFoundError` where there is no lake, `UnsupportedFormatError` and `InvalidConfigError`.
    """
    where = f"{storage.uri}/{layout.LAKE_FILE}"
    try:
        body = orjson.loads(storage.get(layout.LAKE_FILE))
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
