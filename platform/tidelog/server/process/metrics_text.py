"""Prometheus' text format, for answers of 100,000 samples and more.

prometheus_client's own writer takes more than twice as long: it makes an object of each sample and looks at its labels,
while here the samples of a partition share one mapping, whose text is made once.
Source: Prometheus' exposition formats, text format 0.0.4.
"""

from collections.abc import Callable, Iterable
from typing import Final

from tidelog.operations.metric_families import Labels, MetricFamily

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def shown_number(value: float) -> str:
    """A sample's value: a whole number without a fraction."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def rendered(families: Iterable[MetricFamily], number: Callable[[float], str] = shown_number) -> bytes:
    """The families as text. `number`: how a value is written."""
    lines: list[str] = []
    texts: dict[int, str] = {}
    kept: list[Labels] = []  # what `texts` names by identity stays alive
    for family in families:
        name = f"{family.name}_total" if family.is_counter else family.name
        lines.append(f"# HELP {name} {_escaped(family.what)}")
        lines.append(f"# TYPE {name} {'counter' if family.is_counter else 'gauge'}")
        for labels, value in family.samples:
            text = texts.get(id(labels))
            if text is None:
                text = texts[id(labels)] = _shown(labels)
                kept.append(labels)
            lines.append(f"{name}{text} {number(value)}")
    lines.append("")
    return "\n".join(lines).encode()


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items()) + "}"


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
