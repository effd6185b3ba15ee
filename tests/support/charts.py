"""The Helm chart as Helm renders it, for five typical sets of values (`ci/` in the chart).

What was rendered is kept beside the tests that look at it, with a digest of the chart that it was rendered from: so
they need no Helm, and notice a chart that has changed since. `make compat` renders it again, by Helm itself.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from support.kafka_clients import KafkaClient, install, run_command
from support.tools import BIN, ROOT

CHART = ROOT / "deploy/helm/tidelog"
RENDERED = ROOT / "tests/contract/deploy/rendered"
NAMES = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
RELEASE, NAMESPACE = "lake", "data"
_KUBERNETES = "1.33.0"
RENDER = "run: .venv/bin/python tests/compat/run.py --suite chart --write"


def _make_helm(client: KafkaClient, folder: Path) -> None:
    # What Go builds is below .venv, as it goes with it.
    run_command(["go", "install", f"helm.sh/helm/v3/cmd/helm@{client.version}"], folder, GOBIN=str(BIN))


# No client of Kafka's, but installed in the same way; its build takes some minutes.
HELM = KafkaClient("helm", "v3.22.0", "go", _make_helm, lambda _: [BIN / "helm"])


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm, which is installed if it is not there yet."""
    install(HELM)
    own = {f"HELM_{name}_HOME": str(ROOT / "build/helm") for name in ("CACHE", "CONFIG", "DATA")}
    line = [str(word) for word in (BIN / "helm", *arguments)]
    return subprocess.run(line, capture_output=True, text=True, env={**os.environ, **own}, timeout=300, check=False)


def template(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`helm template` of the chart."""
    fixed = ("--namespace", NAMESPACE, "--kube-version", _KUBERNETES)
    return helm("template", RELEASE, CHART, *fixed, *arguments)


def rendered(name: str) -> str:
    """What a set of values gives, with the chart's digest. Raises `AssertionError` where Helm refuses it."""
    done = template("--values", CHART / f"ci/{name}-values.yaml")
    assert done.returncode == 0, done.stderr
    text = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    return f"# Rendered from the chart of {digest()}; when it changes, {RENDER}\n{text}\n"


def digest() -> str:
    """Of all files of the chart; alarms and dashboards, which it links, may change without being rendered again."""
    found = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file() and not path.is_symlink()):
        found.update(path.relative_to(CHART).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:32]


def kept(name: str) -> Path:
    """The file of what a set of values gave."""
    return RENDERED / f"{name}.yaml"


def documents(name: str) -> Iterator[Any]:
    """The objects that a set of values gave."""
    yield from filter(None, yaml.safe_load_all(kept(name).read_text(encoding="utf-8")))
