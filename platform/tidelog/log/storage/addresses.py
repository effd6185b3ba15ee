"""Addresses of lakes: which ones there are, and what to write instead of one that is none.

Every entrance takes addresses by this module, so that a slip of the pen is refused and never becomes a folder.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from os.path import expanduser
from typing import Final

from tidelog.log.base.errors import InvalidUriError
from tidelog.log.storage.option_table import SCHEMES

OBJECT_SCHEMES: Final = tuple(scheme for schemes in SCHEMES.values() for scheme in schemes)
_KNOWN: Final = (*OBJECT_SCHEMES, "file", "memory")
_EXAMPLES: Final = "such as /data/lake or s3://bucket/lake"
_PLACES: Final = (
    "A lake lives in a local folder (a path or file:///path), at s3://, gs://, az:// or abfss://, or at memory://name"
    " in tests"
)
# What to write for schemes of other programs.
_FOREIGN: Final = {
    "s3n": "s3://bucket/path",
    "gcs": "gs://bucket/path",
    "azure": "az://container/path",
    "wasb": "abfss://container@account.dfs.core.windows.net/path",
    "wasbs": "abfss://container@account.dfs.core.windows.net/path",
    "adl": "abfss://container@account.dfs.core.windows.net/path",
    "minio": "s3://bucket/path, with the server's address as the option lake.s3.endpoint",
    "dbfs": "/dbfs/path, or the address of the storage behind it",
}
# A service's host in an address of the web, and how its buckets are addressed.
_HOSTS: Final = (
    (re.compile(r"amazonaws\.com\b"), "s3://bucket/path"),
    (re.compile(r"\b(storage\.googleapis\.com|storage\.cloud\.google\.com)\b"), "gs://bucket/path"),
    (re.compile(r"\.core\.windows\.net\b"), "az://container/path"),
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NEARLY: Final = re.compile(rf"({'|'.join(_KNOWN)})(?::/*|//+)", re.IGNORECASE)
_INSIDE: Final = re.compile(rf"/({'|'.join(_KNOWN)}):/+")
_DRIVE: Final = re.compile(r"(?:file:/+)?([A-Za-z]):[/\\]+(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_]\w*|\{[^}]*\}?|\([^)]*\)?)")
_PROTOCOLS: Final = ("kafka", "plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_BROKER: Final = re.compile(
    rf"(?:({'|'.join(_PROTOCOLS)})://.*)|localhost|\d+(?:\.\d+){{3}}|(?:\[[0-9a-f:.]+\]|[\w.-]+):\d{{1,5}}",
    re.IGNORECASE,
)
_BUCKET: Final = re.compile(r"[\w.-]+(@[\w.-]+)?")
_PASSWORD: Final = re.compile(r"//[^/@]*:[^/@]*@")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a lake is.

    `scheme`: "file", "memory", or an object store's. `place`: a folder's path, the name of a store in memory, or the
    address of an object store.
    """

    scheme: str
    place: str

    @property
    def is_object_store(self) -> bool:
        """Whether an object store keeps the lake."""
        return self.scheme in OBJECT_SCHEMES


def parse_address(address: str | PathLike[str]) -> Address:
    """What an address means. Raises `InvalidUriError`, which says what to write instead."""
    text = fspath(address) if isinstance(address, PathLike) else address
    if not isinstance(text, str):
        raise InvalidUriError(
            f"The lake's address is {type(text).__name__}. Pass a text or a Path: a folder's path, or an address."
        )
    why = why_wrong(text)
    if why:
        raise InvalidUriError(why)
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else "file"
    rest = text[match.end() :] if match else text
    if scheme in OBJECT_SCHEMES:
        return Address(scheme, f"{scheme}:{rest}")
    if scheme == "memory":
        return Address(scheme, rest.strip("/"))
    return Address("file", rest.removeprefix("//") if match else rest)


def why_wrong(address: str) -> str | None:
    """What is wrong with an address, and what to write instead; None for one that may lead to a lake.

    It holds no password of the address's.
    """
    return next((why for check in _CHECKS for why in check(address)), None)


def _blank(address: str) -> Iterator[str]:
    if not address.strip():
        yield f"The lake's address is empty. Give a folder's path or an address, {_EXAMPLES}."


def _password(address: str) -> Iterator[str]:
    """Refuse what other programs read as parts of an address; a local folder's path is looked at by its store."""
    if "://" not in address or address.lower().startswith("file:"):
        return
    if _PASSWORD.search(address) or any(c in address for c in "%?#"):
        yield (
            f"The address {_shown(address)!r} holds a password, or a '%', '?' or '#', which Spark and deltalake read"
            " differently. Write the plain address, and credentials as options."
        )


def _characters(address: str) -> Iterator[str]:
    if not address.isprintable():
        yield f"The lake's address {address!r} holds a character that can't be seen. Write it without."
    bare = address.strip()
    if bare[:1] in "'\"" or bare[-1:] in "'\"":
        yield f"The lake's address {address!r} has quotation marks of its own. Write {bare.strip(chr(39) + chr(34))}"
    if bare != address:
        yield f"The lake's address {address!r} has blanks around it. Write {bare!r}."


def _for_a_shell(address: str) -> Iterator[str]:
    variable = _VARIABLE.search(address)
    if variable:
        yield (
            f"The lake's address {address!r} holds {variable[0]}, which only a shell replaces by a value. Write the"
            " value in its place."
        )
    path = re.sub(r"^file:/*", "", address, flags=re.IGNORECASE)
    if path.startswith("~"):
        whole = expanduser(path)
        instead = f"{whole!r}" if whole != path else "the folder's whole path"
        yield (
            f"The lake's address {address!r} begins with '~', which only a shell replaces by a home folder (and not"
            f" within --lake=…, nor in quotation marks). Write {instead}; a folder of that name is './{path}'."
        )


def _windows(address: str) -> Iterator[str]:
    slashes = address.replace("\\", "/")
    drive = _DRIVE.fullmatch(slashes)
    if drive:
        yield (
            f"The lake's address {address!r} is a path of Windows, and tidelog needs a POSIX system. Under WSL write"
            f" '/mnt/{drive[1].lower()}/{drive[2]}'."
        )
    if slashes != address:
        yield f"The lake's address {address!r} holds '\\', which stores read differently. Write {_mended(slashes)!r}."


def _brokers(address: str) -> Iterator[str]:
    if all(_BROKER.fullmatch(part.strip()) for part in address.split(",")):
        yield (
            f"{address!r} is the address of Kafka brokers, and there are none: programs read and write a lake in its"
            f" storage. Give the lake's address, a folder or a URI, {_EXAMPLES}; a folder of that name is"
            f" './{address}'."
        )


def _joined(address: str) -> Iterator[str]:
    inside = _INSIDE.search(address)
    if inside and not address.lower().startswith(tuple(f"{scheme}://" for scheme in OBJECT_SCHEMES)):
        yield (
            f"The lake's address {address!r} holds one of a store as a folder, as when it was joined to a path. Write"
            f" {_mended(address[inside.start() + 1 :])!r}."
        )


def _scheme(address: str) -> Iterator[str]:
    found = _SCHEME.match(address)
    scheme, rest = (found[1].lower(), address[found.end() :]) if found else ("", address)
    if scheme in _KNOWN and rest.startswith("/" if scheme == "file" else "//"):
        return
    if scheme == "file":
        yield f"The address {address!r} names no folder. Write {rest or '/data/lake'!r}, or file:///data/lake in full."
    if _NEARLY.match(address):
        yield f"The lake's address {address!r} is nearly {_mended(address)!r}. Write that."
    if rest.startswith("/") and scheme:
        yield _foreign(scheme, address)
    if ":" in address.partition("/")[0]:
        yield (
            f"The lake's address {address!r} has a ':' before the first '/', as one with a scheme has. Write"
            f" './{address}' for a folder of that name. {_PLACES}."
        )


def _foreign(scheme: str, address: str) -> str:
    advice = _FOREIGN.get(scheme, "")
    if scheme in ("http", "https"):
        advice = next((form for host, form in _HOSTS if host.search(address)), "s3://bucket/path, gs:// or az://")
    instead = f"Write {advice}" if advice else "Use one of these"
    return f"The address scheme {scheme + '://'!r} is unknown. {_PLACES}. {instead}."


def _file(address: str) -> Iterator[str]:
    match = re.match(r"file://([^/]+)", address, re.IGNORECASE)
    if match:
        yield (
            f"{address!r} names the host {match[1]!r}, and a local folder has none. Write three slashes before an"
            " absolute path: file:///data/lake."
        )


def _memory(address: str) -> Iterator[str]:
    found = re.fullmatch(r"memory://(.*?)/*", address, re.IGNORECASE)
    if found and (not found[1] or "/" in found[1]):
        yield f"{found[1]!r} can't name a store in memory: write memory://name, without a path."


def _bucket(address: str) -> Iterator[str]:
    scheme, _, rest = address.partition("://")
    if scheme.lower() not in OBJECT_SCHEMES:
        return
    thing = "container" if scheme.lower() in SCHEMES["azure"] else "bucket"
    bucket, _, path = rest.rstrip("/").partition("/")
    if not bucket:
        yield f"The lake's address {address!r} names no {thing}. Write {scheme}://{thing}/{path.strip('/') or 'lake'}."
    host, colon, port = bucket.partition(":")
    if colon and port.isdigit():
        option = f"lake.{next(s for s, schemes in SCHEMES.items() if scheme.lower() in schemes)}.endpoint"
        yield (
            f"The lake's address {address!r} names the server {bucket!r} where the {thing} has to stand. Write"
            f" {scheme}://{path or f'{thing}/lake'}, and the server as the option {option}=http://{host}:{port}."
        )
    if not _BUCKET.fullmatch(bucket):
        yield f"{bucket!r} in the lake's address {address!r} can't be the name of a {thing}. Correct it."
    if thing == "container" and re.search(r"^[^@]*\.core\.windows\.net$", bucket):
        yield (
            f"The lake's address {address!r} names no container. Write {scheme}://container@{bucket}/{path or 'lake'}."
        )
    if any(part in ("", ".", "..") for part in path.split("/")) and path:
        plain = "/".join(part for part in path.split("/") if part not in ("", "."))
        yield (
            f"The lake's address {address!r} has an empty part, '.' or '..' in its path, which stores read differently."
            f" Write {scheme}://{bucket}/{plain} without."
        )


def _mended(address: str) -> str:
    """An address whose scheme is nearly one, as it was meant: `s3:/b/l` as `s3://b/l`."""
    match = _NEARLY.match(address)
    if not match:
        return address
    rest = address[match.end() :]
    return f"/{rest}" if match[1].lower() == "file" else f"{match[1].lower()}://{rest}"


def _shown(address: str) -> str:
    return re.sub(r"[?#].*|//[^/]*@", "...", address)


# Each yields what it finds wrong with an address; the first thing counts, and no check after it is tried.
_CHECKS: Final[tuple[Callable[[str], Iterator[str]], ...]] = (
    _blank,
    _password,
    _characters,
    _windows,
    _for_a_shell,
    _brokers,
    _joined,
    _scheme,
    _file,
    _memory,
    _bucket,
)
