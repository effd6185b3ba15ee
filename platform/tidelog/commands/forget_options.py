"""Options of `tidelog forget` and of the job that spark-submit starts, and the keys that they name."""

import base64
import binascii
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tidelog.commands.failures import UsageProblemError

# How a key is written.
KeyEncoding = Literal["text", "hex", "base64"]


@dataclass(frozen=True, kw_only=True)
class ForgetOptions:
    """What a call asks for: which keys to erase from which topics."""

    topics: Annotated[
        list[str], typer.Option("--topic", metavar="TOPIC", help="The topic. Repeatable.", show_default=False)
    ]
    keys: Annotated[list[str] | None, typer.Option("--key", metavar="KEY", help="A key to forget. Repeatable.")] = None
    key_file: Annotated[str | None, typer.Option(metavar="FILE", help="Keys, one a line; '-' is standard input.")] = (
        None
    )
    key_encoding: Annotated[KeyEncoding, typer.Option(help="How the keys are written.")] = "text"
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many records would go, of which files, and change nothing.")
    ] = False
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Return when no file holds such a record any more, however long that takes."),
    ] = False

    def key_bytes(self) -> frozenset[bytes]:
        """The keys. Raises `typer.BadParameter`, and `UsageProblemError` when there are none."""
        encoding = self.key_encoding
        keys = {_decoded(key, encoding, "--key") for key in self.keys or ()}
        if self.key_file is not None:
            lines = sys.stdin.buffer.read() if self.key_file == "-" else Path(self.key_file).read_bytes()
            for number, line in enumerate(lines.split(b"\n"), 1):
                text = line.removesuffix(b"\r")
                if text:
                    where = f"--key-file, line {number}"
                    keys.add(text if encoding == "text" else _decoded(_ascii(text), encoding, where))
        if not keys:
            raise UsageProblemError(
                "No key is given, and records without one can't be distinguished. Give --key or --key-file."
            )
        return frozenset(keys)


def _ascii(line: bytes) -> str:
    return line.decode("ascii", "replace")


def _decoded(text: str, encoding: KeyEncoding, where: str) -> bytes:
    try:
        if encoding == "hex":
            return bytes.fromhex(text)
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise typer.BadParameter(f"{text!r} is not {encoding}.", param_hint=where) from None
    return text.encode("utf-8", "surrogateescape")
