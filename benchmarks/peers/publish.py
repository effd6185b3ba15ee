"""What a run leaves for people: table, page and plots, and blocks of docs/speed.md, docs/brokers.md, README.md."""

from collections.abc import Sequence
from pathlib import Path

import page
import plots
import report
import sizing
import table
from results import KIND, Results

# The plots on docs/speed.md; peers.html has all of them.
ON_THE_PAGE = ("throughput", "latency")


def draw(results: Results, folder: Path, stem: str = KIND) -> list[plots.Plot]:
    """Write `<stem>.html` and a `<stem>-<plot>.png` for each plot into a folder, in place of an earlier run's."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots.plots(results)
    for key in plots.KEYS:
        (folder / f"{stem}-{key}.png").unlink(missing_ok=True)
    for plot in drawn:
        plot.png(folder / f"{stem}-{plot.key}.png")
    (folder / f"{stem}.html").write_text(page.html(results, drawn), encoding="utf-8")
    return drawn


def after_run(results: Results, path: Path) -> None:
    """Save a run's results to `path`, show them, and draw the page and the plots beside them."""
    results.write(path)
    table.show(results)
    draw(results, path.parent, path.stem)
    print(f"page and plots: {path.with_suffix('.html').relative_to(report.ROOT)}")


def keep_and_write_docs() -> str:
    """Keep the newest whole results, their page and plots, and write the blocks of the docs from them.

    Cases that the whole run did not get to, or did not have yet, are taken from a later run of these.
    """
    fresh, kept = report.FRESH / f"{KIND}.json", report.KEPT / f"{KIND}.json"
    later = report.FRESH / f"{KIND}-partial.json"
    whole = [Results.read(path) for path in (kept, fresh) if path.exists()]
    if not whole:
        raise SystemExit(f"There are no whole results in {report.FRESH} or {report.KEPT}: run make bench-peers first.")
    # Of the same run those that are kept, which may hold what was measured again since.
    results = max(whole, key=lambda one: one.at)
    if later.exists():
        results = results.filled(Results.read(later))
    results.write(kept)
    report.write_block(report.README, KIND, table.summary(results))
    for name, begins in table.SECTIONS.items():
        if block := table.section(results, begins):  # results of before a case was there leave its block as it is
            report.write_block(report.SPEED, name, block)
    sizing.write(results, report.BROKERS)
    return report.write_block(report.SPEED, KIND, table.markdown(results, _shown(draw(results, report.KEPT))))


def _shown(drawn: Sequence[plots.Plot]) -> list[tuple[str, str]]:
    folder = f"../{report.KEPT.relative_to(report.ROOT)}"
    return [(f"{folder}/{KIND}-{plot.key}.png", plot.text) for plot in drawn if plot.key in ON_THE_PAGE]
