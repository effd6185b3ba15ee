"""The chart at Kubernetes' own API server, which judges each object as a cluster's does: no pod runs."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compat import kubernetes_installs
from compat.kubernetes_server import Server, build, serving, wait
from compat.suite import Outcome, ToolError, tried
from support.charts import NAMES, documents
from support.custom_resources import SCHEMAS

SUITE = "kubernetes"
# The definitions that operators bring: {kind: its plural}.
_PLURALS = {
    "ServiceMonitor": "servicemonitors",
    "PrometheusRule": "prometheusrules",
    "ScheduledSparkApplication": "scheduledsparkapplications",
}


def outcomes(built_in: Path, work: Path, only: str) -> Iterator[Outcome]:
    """Bring the objects of each set of values to a server. Raises `ToolError`."""
    with serving(build(built_in), work) as server:
        for kind, plural in _PLURALS.items():
            _define(server, kind, plural)
        tests: dict[str, Callable[[], None]] = {
            f"takes {name}": lambda name=name: _takes(server, name) for name in NAMES
        }
        tests["refuses a field that is none"] = lambda: _refuses(server)
        tests |= kubernetes_installs.tests(server)
        yield from tried(SUITE, tests, only)


def _define(server: Server, kind: str, plural: str) -> None:
    """Define a kind as its operator does, with the fields that the chart uses and no other."""
    schema = SCHEMAS[kind]
    group, version = schema["properties"]["apiVersion"]["const"].split("/")
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"type": "object", "properties": {"spec": _structural(schema["properties"]["spec"])}}
    one = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Groups below k8s.io are Kubernetes' own, unless one says otherwise.
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [one]},
    }
    status, said = server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    if status != 201:
        raise ToolError(f"the server takes no definition of {kind}: {said['message']}")
    place = f"/apis/{group}/{version}/{plural}"
    wait(lambda: server.call("GET", place)[0] == 200, f"a server that serves {plural}")


def _structural(schema: Any) -> Any:
    """A schema in the form that definitions want: fields that it does not name are none, and need no word."""
    if not isinstance(schema, dict):
        return [_structural(one) for one in schema] if isinstance(schema, list) else schema
    made = {key: _structural(value) for key, value in schema.items() if value is not False}
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "enum" in made:
        made["type"] = "string"
    if made.get("type") == "object" and not {"properties", "additionalProperties"} & made.keys():
        made["x-kubernetes-preserve-unknown-fields"] = True
    return made


def _takes(server: Server, name: str) -> None:
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    refused = []
    for one in documents(name):
        status, said = server.apply(one, name)
        if status not in (200, 201):
            refused.append(f"{one['kind']} {one['metadata']['name']}: {said['message']}")
    assert refused == [], refused
    # Ports of machines are the cluster's, and the next test wants the same ones.
    server.call("DELETE", f"/api/v1/namespaces/{name}")
    wait(lambda: server.call("GET", f"/api/v1/namespaces/{name}")[0] == 404, f"an end of the namespace {name}")


def _refuses(server: Server) -> None:
    for one in documents("s3"):
        if one["kind"] in ("StatefulSet", "CronJob", "Service"):
            wrong = copy.deepcopy(one)
            wrong["spec"]["replica"] = 3
            status, said = server.apply(wrong, "default")
            assert status >= 400, (status, said)
            assert "replica" in said["message"], said
