"""Prometheus' text format, for answers of 100,000 samples and more.

prometheus_client's own writer takes twice as long: it looks at the labels of each sample, while here the samples of a
partition share one mapping, whose text is made once.
Source: Prometheus' exposition formats, text format 0.0.4.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]


def add(family: Metric, labels: Labels, value: float) -> None:
    """Add a sample to a gauge's family, or to a counter's; `labels` may be shared with samples of other families."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    family.samples.append(Sample(name, labels, value))  # type: ignore[arg-type]  # it is only read


def rendered(families: Iterable[Metric]) -> bytes:
    """The families as text."""
    lines: list[str] = []
    known: dict[int, str] = {}
    kept: list[Labels] = []  # what `known` names by identity stays alive
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"# HELP {name} {_escaped(family.documentation)}")
        lines.append(f"# TYPE {name} {family.type}")
        for sample in family.samples:
            labels = sample.labels
            text = known.get(id(labels))
            if text is None:
                text = known[id(labels)] = _shown(labels)
                kept.append(labels)
            lines.append(f"{sample.name}{text} {_number(sample.value)}")
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


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
