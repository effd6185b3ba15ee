"""The page of a run side by side: one file, nothing from outside, light and dark, wide and narrow."""

import re
from collections.abc import Sequence
from html import escape

from measures import Measure
from plots import COLORS, GRID, INK, MUTED, SURFACE, Plot
from results import FAMILIES, NAMES, Results
from table import PEERS, Line, amount, leads, lines, setting, spread, standings

_TITLE = "tidelog, Kafka and plain Delta, side by side"
_VARIABLES = {
    **{color: f"var(--{family})" for family, color in COLORS.items()},
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    SURFACE: "var(--surface)",
}
_LONG = re.compile(r"\d+\.\d{2,}")
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --muted: #5a6875; --grid: #d9dfe5; --surface: #fff; --page: #f4f6f8;
  --tidelog: #0072b2; --kafka: #c85400; --delta: #00795a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --muted: #a3b0bc; --grid: #38434e; --surface: #1a2129;
  --page: #11161b; --tidelog: #57b5ec; --kafka: #ff8f45; --delta: #3cc79a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 0 0 .75rem; }
section { background: var(--surface); border: 1px solid var(--grid); border-radius: .5rem; padding: 1rem;
  margin: 1rem 0; }
p { margin: .5rem 0; max-width: 46rem; }
.quiet { color: var(--muted); font-size: .875rem; }
ul { padding-left: 1.25rem; margin: .25rem 0; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; } h4 { font-size: .875rem; color: var(--muted); margin: .5rem 0 0; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 0 1.5rem; }
.columns ul { font-size: .9375rem; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; } svg.narrow { display: none; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
.key { display: flex; gap: 1.25rem; list-style: none; padding: 0; margin: .75rem 0; font-weight: 600; }
.key li::before { content: ""; display: inline-block; width: .8em; height: .8em; border-radius: .15em;
  margin-right: .4em; background: var(--of); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .5rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--grid); }
th:first-child { text-align: left; } tbody th { font-weight: 500; } thead th { color: var(--muted); font-weight: 600; }
td small { display: block; color: var(--muted); } .ahead { font-weight: 700; }
code { font-family: ui-monospace, monospace; }
@media (max-width: 44rem) {
  svg.wide { display: none; } svg.narrow { display: block; }
  table, tbody, tr, tbody th, td { display: block; width: 100%; } thead { position: absolute; clip-path: inset(50%); }
  tr { padding: .6rem 0; border-bottom: 1px solid var(--grid); } tbody th, td { border: 0; padding: .1rem 0; }
  tbody th { font-weight: 700; } td { display: flex; justify-content: space-between; gap: 1rem; }
  td:empty { display: none; } td::before { content: attr(data-of); color: var(--muted); }
  td span { text-align: right; }
}
"""


def html(results: Results, plots: Sequence[Plot]) -> str:
    """The whole page."""
    key = "".join(f'<li style="--of: var(--{family})">{NAMES[family]}</li>' for family in FAMILIES)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_TITLE}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{_TITLE}</h1>
<p class="quiet">{escape(_when(results))}</p>
<ul class="key">{key}</ul>
<section aria-labelledby="standing">
<h2 id="standing">Who is ahead</h2>
{_standing(results)}
</section>
{"".join(map(_figure, plots))}
<section aria-labelledby="figures">
<h2 id="figures">All figures</h2>
<p class="quiet">Medians of the rounds, below them the least and the greatest. A ratio is the median of the rounds'
ratios of tidelog's figure to the other's; it is even where the rounds disagree on who is ahead.</p>
{_table(results)}
</section>
<p class="quiet">Made by <code>make bench-peers</code>, which runs anywhere. {escape(setting(results))}.</p>
</main>
</body>
</html>
"""


def inline(svg: str, text: str, kind: str) -> str:
    """matplotlib's SVG as part of a page: its colors and letters are the page's, its names meet no other picture's."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", rf'<svg class="{kind}" {{}} \1>', svg, count=1)
    svg = re.sub(r' id="(?!p[0-9a-f]{10}"|[mC][0-9a-f]{6})[^"]*"', "", svg.replace("xlink:href", "href"))
    svg = re.sub(r"font-family: [^;\"]*;? ?|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]+>", lambda tag: _LONG.sub(lambda number: f"{float(number[0]):.1f}", tag[0]), svg)
    for color, variable in _VARIABLES.items():
        svg = svg.replace(color, variable)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    return svg.replace("{}", f'role="img" aria-label="{escape(text)}"', 1)


def _figure(plot: Plot) -> str:
    wide, narrow = (
        inline(plot.svg(narrow=small), plot.text, kind) for small, kind in ((False, "wide"), (True, "narrow"))
    )
    reading, _, _ = plot.foot.partition(". ")
    return f"""<section aria-labelledby="{plot.key}">
<h2 id="{plot.key}">{escape(plot.title)}</h2>
<figure>
{wide}
{narrow}
<figcaption class="quiet">{escape(reading)}.</figcaption>
</figure>
</section>
"""


def _when(results: Results) -> str:
    quick = " (a quick run, with small sizes)" if results.settings.get("quick") else ""
    return f"Measured on {results.at[:10]}{quick}, on one machine, in turns: {setting(results)}."


def _standing(results: Results) -> str:
    parts = []
    for family, stands in standings(results).items():
        lists = [(words, stands[how]) for how, words in leads(family).items() if stands[how]]
        told = "\n".join(f"<div><h4>{words}</h4><ul>{_items(listed)}</ul></div>" for words, listed in lists)
        parts.append(f'<h3>Against {NAMES[family]}</h3>\n<div class="columns">\n{told}\n</div>')
    return "\n".join(parts)


def _items(listed: Sequence[str]) -> str:
    return "".join(f"<li>{escape(one)}</li>" for one in listed)


def _table(results: Results) -> str:
    headings = ["", *(NAMES[family] for family in FAMILIES), *(f"to {NAMES[family]}" for family in PEERS), "must be"]
    head = "".join(f'<th role="columnheader" scope="col">{text}</th>' for text in headings)
    body = "\n".join(_row(line, headings) for line in lines(results))
    # The roles stay when a narrow screen shows rows as blocks, which would take them away.
    return (
        f'<table role="table" aria-labelledby="figures">\n<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{body}\n</tbody>\n</table>'
    )


def _row(line: Line, headings: Sequence[str]) -> str:
    cells = [_measured(line.measures[family]) for family in FAMILIES]
    cells += [
        f'<span class="{how}">{text}<small>{how}</small></span>' if how else ""
        for text, how in map(line.against, PEERS)
    ]
    mark = "" if line.ok is None else "<small>reached</small>" if line.ok else "<small>short</small>"
    cells.append(f"<span>{line.demand}{mark}</span>" if line.demand else "")
    told = "".join(f'<td role="cell" data-of="{of}">{cell}</td>' for of, cell in zip(headings[1:], cells, strict=True))
    better = f'<small class="quiet"> ({line.better} is better)</small>'
    return f'<tr role="row"><th role="rowheader" scope="row">{escape(line.what)}{better}</th>{told}</tr>'


def _measured(measure: Measure | None) -> str:
    if measure is None:
        return ""
    return f"<span>{amount(measure.median, measure.unit)}<small>{spread(measure)}</small></span>"
