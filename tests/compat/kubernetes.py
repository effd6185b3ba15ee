"""The chart at Kubernetes' own API server, which judges each object as a cluster's does: no pod runs.

etcd and the API server are built from their modules, which takes many minutes once; Go must be there.
"""

import copy
import json
import os
import re
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from compat.suite import Outcome, ToolError, built, free_ports, tried
from support.charts import CHART, NAMES, RELEASE, documents, helm
from support.custom_resources import SCHEMAS
from support.waiting import eventually

SUITE = "kubernetes"
VERSION = "v1.37.2"
_TOKEN = "only-on-loopback"
_STARTS_WITHIN_S = 120
# The definitions that operators bring: {kind: its plural}.
_PLURALS = {
    "ServiceMonitor": "servicemonitors",
    "PrometheusRule": "prometheusrules",
    "ScheduledSparkApplication": "scheduledsparkapplications",
}


def build(folder: Path) -> Path:
    """The folder of the programs `etcd` and `kube-apiserver`; builds what is not there."""
    programs = folder / f"kubernetes-{VERSION}"
    if not (programs / "kube-apiserver").exists():
        programs.mkdir(parents=True, exist_ok=True)
        (programs / "go.mod").write_text("module compat\n\ngo 1.26\n")
        built(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}"], log := programs / "log", cwd=programs)
        told = re.search(r'"GoMod": "(.*)"', log.read_text())
        if told is None:
            raise ToolError(f"go does not say where it put k8s.io/kubernetes ({log})")
        (programs / "go.mod").write_text(_module(Path(told[1]).read_text()))
        stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
        for package in ("go.etcd.io/etcd/server/v3", "k8s.io/kubernetes/cmd/kube-apiserver"):
            name = "etcd" if "etcd" in package else "kube-apiserver"
            line = ["go", "build", "-mod=mod", "-ldflags", stamp, "-o", programs / name, package]
            built(line, programs / f"{name}.log", cwd=programs)
    return programs


def _module(of_kubernetes: str) -> str:
    """A module that builds Kubernetes: its parts, which its own module has beside it, from their releases."""
    parts = re.findall(r"^\s*(k8s\.io/\S+) => \./staging", of_kubernetes, re.MULTILINE)
    of_parts = f"v0.{VERSION.partition('.')[2]}"
    needs = {
        name: of_parts if name in parts else version
        for name, version in re.findall(r"^\s+(\S+/\S+) (v\S+)(?: // indirect)?$", of_kubernetes, re.MULTILINE)
    }
    lines = [f"\t{name} {version}" for name, version in {"k8s.io/kubernetes": VERSION, **needs}.items()]
    replaced = [f"\t{name} => {name} {of_parts}" for name in parts]
    return "\n".join(["module compat\n\ngo 1.26\n\nrequire (", *lines, ")\n\nreplace (", *replaced, ")\n"])


class Server:
    """Calls of an API server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._trusting = ssl._create_unverified_context()  # it has signed its certificate itself
        self.resources = cache(self._resources)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        """(status, the answer)."""
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._trusting, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {"message": text}

    def ready(self) -> bool:
        """Whether it serves."""
        try:
            return self.call("GET", "/api/v1/namespaces/default")[0] == 200
        except OSError:
            return False

    def _resources(self, group_version: str) -> dict[str, str]:
        """{kind: the path of its objects, with {} for the namespace}."""
        base = "/api/v1" if group_version == "v1" else f"/apis/{group_version}"
        _, listed = self.call("GET", base)
        found = [one for one in listed.get("resources", ()) if "/" not in one["name"]]
        return {one["kind"]: f"{base}/namespaces/{{}}/{one['name']}" for one in found if one["namespaced"]}

    def apply(self, one: dict[str, Any], namespace: str) -> tuple[int, Any]:
        """Apply an object, as `kubectl apply --server-side --validate=strict` does."""
        one = {**one, "metadata": {**one["metadata"], "namespace": namespace}}
        path = self.resources(one["apiVersion"])[one["kind"]].format(namespace)
        query = "fieldManager=tests&fieldValidation=Strict"
        return self.call("PATCH", f"{path}/{one['metadata']['name']}?{query}", one, "application/apply-patch+yaml")


@contextmanager
def serving(programs: Path, work: Path) -> Iterator[Server]:
    """An API server over an etcd of its own."""
    work.mkdir(parents=True)
    etcd_port, peer_port, port = free_ports(3)
    etcd, peer = f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}"
    key = work / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (work / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
    lines: dict[str, list[str | Path]] = {
        "etcd": [
            "--data-dir", work / "etcd", "--unsafe-no-fsync", "--listen-client-urls", etcd, "--advertise-client-urls",
            etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
            f"default={peer}",
        ],
        "kube-apiserver": [
            "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", str(port), "--cert-dir",
            work / "certificates", "--endpoint-reconciler-type", "none", "--authorization-mode", "RBAC",
            "--token-auth-file", work / "tokens.csv", "--service-cluster-ip-range", "10.0.0.0/24",
            "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
            "--service-account-signing-key-file", key,
        ],
    }  # fmt: skip
    processes = []
    try:
        for name, words in lines.items():
            with open(work / f"{name}.log", "wb") as log:
                processes.append(subprocess.Popen([programs / name, *words], stdout=log, stderr=log))
        server = Server(f"https://127.0.0.1:{port}")

        def ended_or_ready() -> bool:
            if any(process.poll() is not None for process in processes):
                raise ToolError(f"no API server comes up; {work} has the logs")
            return server.ready()

        _wait(ended_or_ready, f"an API server that is ready; {work} has the logs")
        yield server
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def outcomes(built_in: Path, work: Path, only: str) -> Iterator[Outcome]:
    """Bring the objects of each set of values to a server. Raises `ToolError`."""
    with serving(build(built_in), work) as server:
        for kind, plural in _PLURALS.items():
            _define(server, kind, plural)
        tests: dict[str, Callable[[], None]] = {
            f"takes {name}": lambda name=name: _takes(server, name) for name in NAMES
        }
        tests["refuses a field that is none"] = lambda: _refuses(server)
        tests["Helm installs, upgrades and uninstalls"] = lambda: _by_helm(server, work)
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
    _wait(lambda: server.call("GET", place)[0] == 200, f"a server that serves {plural}")


def _wait(condition: Callable[[], bool], what: str) -> None:
    try:
        eventually(condition, what, _STARTS_WITHIN_S)
    except AssertionError as e:
        raise ToolError(str(e)) from e


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


def _refuses(server: Server) -> None:
    for one in documents("s3"):
        if one["kind"] in ("StatefulSet", "CronJob", "Service"):
            wrong = copy.deepcopy(one)
            wrong["spec"]["replica"] = 3
            status, said = server.apply(wrong, "default")
            assert status >= 400, (status, said)
            assert "replica" in said["message"], said


def _by_helm(server: Server, work: Path) -> None:
    place = ["--namespace", "helm", "--kube-apiserver", server.address, "--kube-token", _TOKEN]
    place += ["--kube-insecure-skip-tls-verify"]
    values = ["--values", str(CHART / "ci/s3-values.yaml")]
    brokers = "/apis/apps/v1/namespaces/helm/statefulsets"

    def done(*words: str) -> None:
        ended = helm(*words, *place)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def replicas() -> list[int]:
        return [one["spec"]["replicas"] for one in server.call("GET", brokers)[1]["items"]]

    (work / "kubeconfig").write_text("")
    os.environ["KUBECONFIG"] = str(work / "kubeconfig")
    done("install", RELEASE, str(CHART), "--create-namespace", *values)
    (before,) = replicas()
    done("upgrade", RELEASE, str(CHART), *values, "--set", f"brokers.replicas={before + 2}")
    assert replicas() == [before + 2]
    done("uninstall", RELEASE)
    assert replicas() == []
