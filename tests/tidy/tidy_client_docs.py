"""The tables of docs/clients.md as the code would have them: the keys of the clients' settings.

Run as a file it writes them.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from tidy_docs import table, with_tables
from tidy_repository import ROOT

from tidelog.clients.settings import CommonSettings, ConsumerSettings, ProducerSettings
from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.log.base.keys import FieldKey, keys_of

CLIENTS = "docs/clients.md"


def clients_tables() -> dict[str, str]:
    """The tables by name."""
    head = ("key", "other names", "default", "takes", "meaning")
    common = set(keys_of(CommonSettings))
    refused = [*REFUSED.items(), *((name, f"producer: {why}") for name, why in REFUSED_FOR_PRODUCERS.items())]
    return {
        "keys of every client": table(head, _rows(CommonSettings, set())),
        "keys of a producer": table(head, _rows(ProducerSettings, common)),
        "keys of a consumer": table(head, _rows(ConsumerSettings, common)),
        "ignored keys": table(("keys", "why they do nothing"), _by_reason(IGNORED.items())),
        "refused keys": table(("keys", "why"), _by_reason(refused)),
    }


def _rows(settings: type[Any], without: set[str]) -> list[tuple[str, ...]]:
    defaults = {field.name: field.default for field in fields(settings)}
    found = [(key, defaults[field]) for field, key in keys_of(settings).items() if field not in without]
    return [
        (
            f"`{key.name}`",
            ", ".join(f"`{alias}`" for alias in key.aliases),
            _default(key, default),
            key.kind.allowed,
            key.doc,
        )
        for key, default in sorted(found, key=lambda row: row[0].name)
    ]


def _default(key: FieldKey, default: Any) -> str:
    if key.unset:
        return key.unset
    if default is None:
        return ""
    if isinstance(default, tuple):
        default = ",".join(default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`".replace(".0`", "`")


def _by_reason(reasons: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons:
        by_reason.setdefault(reason, []).append(f"`{name}`")
    return [(", ".join(sorted(names)), reason) for reason, names in by_reason.items()]


if __name__ == "__main__":
    page = ROOT / CLIENTS
    page.write_text(with_tables(page.read_text(encoding="utf-8"), clients_tables()), encoding="utf-8")
