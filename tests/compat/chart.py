"""The Helm chart by Helm itself: what it lints, renders and refuses."""

from collections.abc import Callable, Iterator, Sequence

from compat.suite import Outcome, tried
from support.charts import CHART, NAMES, helm, kept, rendered, template

SUITE = "chart"
_LAKE = "lake.address=s3://bucket/lake"
# Values that are each right and don't go together, and what Helm is to say.
REFUSED: dict[str, tuple[Sequence[str], str]] = {
    "no lake": ((), "lake.address says where the lake is"),
    "TLS without a certificate": ((_LAKE, "brokers.listener.protocol=SSL"), "brokers.tls.secretName names"),
    "clients outside without a name": (
        (_LAKE, "brokers.external.enabled=true", "brokers.external.protocol=PLAINTEXT"), "brokers.external.host"
    ),
    "a plain listener past ACLs": (
        (_LAKE, "brokers.external.enabled=true", "brokers.external.host=b-{index}.example.com"),
        "a PLAINTEXT one of brokers leads past all ACLs",
    ),
    "Spark on a disk": (("lake.volume.enabled=true", "maintenance.by=spark"), "one machine's"),
    "a number that is none": ((_LAKE, "brokers.replicas=many"), "/brokers/replicas"),
    "a key that is none": ((_LAKE, "brokers.replica=3"), "replica"),
}  # fmt: skip


def outcomes(only: str, *, write: bool) -> Iterator[Outcome]:
    """Try the chart; `write`: keep what was rendered, in place of comparing it."""
    tests: dict[str, Callable[[], None]] = {f"lints {name}": lambda name=name: _lints(name) for name in NAMES}
    tests |= {f"renders {name}": lambda name=name: _renders(name, write=write) for name in NAMES}
    tests |= {f"refuses {what}": lambda row=row: _refuses(*row) for what, row in REFUSED.items()}
    yield from tried(SUITE, tests, only)


def _lints(name: str) -> None:
    done = helm("lint", CHART, "--strict", "--kube-version", "1.33.0", "--values", CHART / f"ci/{name}-values.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def _renders(name: str, *, write: bool) -> None:
    text = rendered(name)
    if write:
        kept(name).write_text(text, encoding="utf-8")
    assert kept(name).read_text(encoding="utf-8") == text, f"{kept(name)} is of another chart: give --write"


def _refuses(values: Sequence[str], said: str) -> None:
    done = template(*(word for value in values for word in ("--set-string" if "many" in value else "--set", value)))
    assert done.returncode != 0, "it was rendered"
    assert said in done.stderr, done.stderr
