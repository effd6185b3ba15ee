"""Where a command finds schemas: in the lake itself, or at a registry's address."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.log.base.extras import require
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.operations.schemas.modules import REGISTRY_MODULES

if TYPE_CHECKING:
    from tidelog.clients.schema_registry.client import SchemaRegistryClient
    from tidelog.log.lake import Lake

# Longer than any user and password: a file that is none is not read whole.
_MOST_CHARACTERS = 8_192


@dataclass(frozen=True, kw_only=True)
class RegistryOptions:
    """Where schemas are."""

    panel: ClassVar[str] = "Where schemas are: in the lake, unless given"

    registry: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A registry's address, or several with commas between.", show_default=False),
    ] = None
    registry_user_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="With --registry: a file that holds user:password for it.", show_default=False
        ),
    ] = None
    schemas_topic: Annotated[str, typer.Option(metavar="TOPIC", help="The topic of a lake that holds its schemas.")] = (
        SCHEMAS_TOPIC
    )

    def settings(self, lake: "Lake | None") -> dict[str, Any]:
        """A client's configuration. `lake`: opened, where there is no address. Raises `UsageProblemError`."""
        if self.registry is None:
            if self.registry_user_file is not None:
                raise UsageProblemError("--registry-user-file goes with --registry: a lake asks for no password.")
            return {"lake": lake, "topic": self.schemas_topic}
        if not all(url.strip().startswith(("http://", "https://")) for url in self.registry.split(",")):
            raise UsageProblemError(f"{self.registry!r} is no address: --registry takes http://HOST:PORT.")
        user = {} if self.registry_user_file is None else {"basic.auth.user.info": _read(self.registry_user_file)}
        return {"url": self.registry, "max.retries": 0, **user}  # the person who typed the command does


@contextmanager
def registry_client(call: Session, where: RegistryOptions, *, create: bool = False) -> "Iterator[SchemaRegistryClient]":
    """A client, until the end of the block. `create`: make the lake where it is not there yet.

    Raises as opening the lake does, and `UsageProblemError`.
    """
    require("registry", *REGISTRY_MODULES)
    from tidelog.clients.schema_registry.client import SchemaRegistryClient

    if where.registry is not None:
        with SchemaRegistryClient(where.settings(None)) as client:
            yield client
        return
    with call.open_lake(create=create) as lake:
        if not create:
            lake.require_lake()
        with SchemaRegistryClient(where.settings(lake)) as client:
            yield client


def opened_client(where: RegistryOptions, lake: "Lake") -> "SchemaRegistryClient":
    """A client beside a lake that is open."""
    from tidelog.clients.schema_registry.client import SchemaRegistryClient

    return SchemaRegistryClient(where.settings(lake))


def _read(name: str) -> str:
    """The user and the password that a file holds."""
    try:
        with Path(name).open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except UnicodeDecodeError:
        text = ""
    credentials = text.removesuffix("\n").removesuffix("\r")
    if len(text) > _MOST_CHARACTERS or "\n" in credentials or ":" not in credentials:
        raise UsageProblemError(f"The file {name} holds no user:password. Write it as one line of text.")
    return credentials
