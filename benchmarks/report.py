"""The table in the terminal, the results file, and the tables of docs/speed.md made from it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import machine
from figures import Row
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FRESH = ROOT / "artifacts" / "bench"
KEPT = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
SPEED = ROOT / "docs" / "speed.md"
BROKERS = ROOT / "docs" / "brokers.md"
KINDS = ("bench", "soak")
# The blocks of docs/speed.md that have cases of their own, by how the cases' names begin; all others are in "bench".
SECTIONS = {
    "bench-brokers": ("broker_",),
    "bench-schemas": ("typed_", "serializers", "registry"),
    "bench-mirrors": ("mirror",),
    "bench-changes": ("postgres_changes",),
    "bench-console": ("console", "scrape"),
}


def show(rows: Sequence[Row], facts: dict[str, Any]) -> None:
    """Print the table."""
    table = Table(title=machine.one_line(facts), title_justify="left", show_lines=False)
    for heading in ("what", "must reach", "measured", ""):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row.what, row.must, row.measured, "[green]ok[/]" if row.ok else "[red]short[/]")
    Console().print(table)


def save(kind: str, rows: Sequence[Row], facts: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Write the results file of a run and return its path."""
    FRESH.mkdir(parents=True, exist_ok=True)
    body = {
        "kind": kind,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": settings,
        "machine": facts,
        "rows": [row.as_json() for row in rows],
    }
    path = FRESH / f"{kind}{'' if settings.get('whole') else '-partial'}.json"
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    return path


def keep_and_write_docs() -> str:
    """Keep the newest whole results in the repository, and write the tables of docs/speed.md from those kept.

    Cases that were measured again afterwards, in full size, take the place of what the whole run found. Those that
    failed in it must have been.
    """
    KEPT.mkdir(exist_ok=True)
    bodies = []
    for kind in KINDS:
        fresh, later, kept = FRESH / f"{kind}.json", FRESH / f"{kind}-partial.json", KEPT / f"{kind}.json"
        body = newest(_read(fresh), _read(kept))
        if body is not None:
            bodies.append(renewed(body, _read(later)))
            if missing := missing_cases(bodies[-1]):
                raise SystemExit(f"{', '.join(missing)} failed in the whole run: measure again, by --only.")
            kept.write_text(json.dumps(bodies[-1], indent=1) + "\n", encoding="utf-8")
    if not bodies:
        raise SystemExit(f"There are no whole results in {FRESH} or {KEPT}: run make bench first.")
    return write_tables(SPEED, bodies)


def write_tables(page: Path, bodies: Sequence[dict[str, Any]]) -> str:
    """Write each section's rows into its block, and return all of them. A block that gets no row stays as it is."""
    written = []
    for name in ("bench", *SECTIONS):
        found = [_only(name, body) for body in bodies]
        if any(body["rows"] for body in found):
            written.append(write_block(page, name, _markdown(found)))
    return "\n\n".join(written)


def _only(section: str, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "rows": [row for row in body["rows"] if _section(row) == section]}


def _section(row: dict[str, Any]) -> str:
    case = row.get("case", "")
    return next((name for name, begins in SECTIONS.items() if case.startswith(begins)), "bench")


def newest(fresh: dict[str, Any] | None, kept: dict[str, Any] | None) -> dict[str, Any] | None:
    """The later whole results. Of the same run those that are kept, which may hold what was measured again since."""
    if fresh is None or kept is None:
        return fresh or kept
    return fresh if fresh["at"] > kept["at"] else kept


def renewed(whole: dict[str, Any], later: dict[str, Any] | None) -> dict[str, Any]:
    """Whole results, with the rows that a later run of some cases on this machine measured again or adds.

    A row is known by what it measures. A quick run, an earlier one or another machine's changes nothing.
    """
    if (
        later is None
        or later["settings"]["quick"]
        or later["at"] <= max([whole["at"], *(again["at"] for again in whole.get("again", []))])
        or not machine.is_same(later["machine"], whole["machine"])
    ):
        return whole
    found = {row["what"]: row for row in later["rows"]}
    rows = [found.pop(row["what"], row) for row in whole["rows"]]
    again = {"at": later["at"], "rows": [row["what"] for row in later["rows"]]}
    return {**whole, "again": [*whole.get("again", []), again], "rows": [*rows, *found.values()]}


def missing_cases(whole: dict[str, Any]) -> list[str]:
    """The cases that failed and were not measured again."""
    return [case for case in whole["settings"].get("failed", ()) if case not in {row["case"] for row in whole["rows"]}]


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_block(page: Path, name: str, block: str) -> str:
    """Put a block between a page's two marks of this name, and return it."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    text = page.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise SystemExit(f"{page} has no block between {begin} and {end}: add these two lines where it belongs.")
    before, after = text[: text.index(begin) + len(begin)], text[text.index(end) :]
    page.write_text(f"{before}\n{block}\n{after}", encoding="utf-8")
    return block


def _markdown(bodies: Sequence[dict[str, Any]]) -> str:
    bodies = [body for body in bodies if body["rows"]]
    lines = ["| what | must reach | measured | case |", "|---|---|---|---|"]
    for body in bodies:
        lines.extend(
            f"| {r['what']} | {r['must']} | {r['measured']}{_mark(r)} | {_case(body, r)} |" for r in body["rows"]
        )
    runs = [run for body in bodies for run in (body, *body.get("again", []))]
    days = " and ".join(sorted({run["at"][:10] for run in runs}))
    kinds = " and ".join(f"[{b['kind']}.json](../benchmarks/results/{b['kind']}.json)" for b in bodies)
    lines += ["", f"Measured on {days}: {machine.one_line(bodies[0]['machine'])}. All figures: {kinds}."]
    return "\n".join(lines)


def _case(body: dict[str, Any], row: dict[str, Any]) -> str:
    """What `--only` takes to measure the row again; a soak has one case."""
    case = row.get("case", "")
    return f"`{case}`" if case and body["kind"] == "bench" else ""


def _mark(row: dict[str, Any]) -> str:
    return "" if row["ok"] else " (short)"
