"""The page's files, as they ship with the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import Response

from tidelog.console.base.errors import ConsoleError
from tidelog.log.base.typed_values import listed

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/vnd.microsoft.icon",
    "woff2": "font/woff2",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "map": "application/json",
}


@dataclass(frozen=True, slots=True)
class _PageFile:
    body: bytes
    media_type: str
    tag: str


class PageFiles:
    """All files of the page, read once. Their names are the paths: nothing else of the disk can be asked for."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._files: dict[str, _PageFile] = {}
        self._read(root or files("tidelog.console").joinpath("page"), "")

    def _read(self, folder: Traversable, prefix: str) -> None:
        for one in folder.iterdir():
            if one.is_dir():
                self._read(one, f"{prefix}{one.name}/")
            elif (media_type := _TYPES.get(one.name.rpartition(".")[2])) is not None:
                body = one.read_bytes()
                self._files[prefix + one.name] = _PageFile(body, media_type, f'"{sha256(body).hexdigest()[:32]}"')

    def answer(self, path: str, known: str | None) -> Response:
        """A file, or 304 where the browser has it. `path`: begins with "/"; `known`: the header If-None-Match."""
        found = self._files.get(path[1:] or "index.html")
        if found is None:
            raise ConsoleError(404, "The console has nothing at this path.")
        headers = {"etag": found.tag, "cache-control": "no-cache"}
        if known is not None and found.tag in (tag.removeprefix("W/") for tag in listed(known)):
            return Response(None, 304, headers)
        return Response(found.body, 200, headers, found.media_type)
