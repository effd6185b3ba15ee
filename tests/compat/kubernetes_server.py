"""Kubernetes' API server over an etcd, and the controllers that make pods of what is asked for; no pod runs.

All three are built from their modules, which takes many minutes once; Go must be there.
"""

import json
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

from compat.suite import ToolError, built, free_ports
from support.waiting import eventually

VERSION = "v1.37.2"
TOKEN = "only-on-loopback"
_STARTS_WITHIN_S = 120
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}


# Those of what the chart asks for, and of namespaces.
_CONTROLLERS = tuple(
    f"{name}-controller"
    for name in (
        "statefulset", "deployment", "replicaset", "job", "cronjob", "disruption", "serviceaccount", "namespace",
        "garbage-collector", "persistentvolumeclaim-protection",
    )
)  # fmt: skip


def build(folder: Path) -> Path:
    """The folder of the programs; builds those that are not there. Raises `ToolError`."""
    programs = folder / f"kubernetes-{VERSION}"
    missing = {name: package for name, package in _PACKAGES.items() if not (programs / name).exists()}
    if missing:
        programs.mkdir(parents=True, exist_ok=True)
        (programs / "go.mod").write_text("module compat\n\ngo 1.26\n")
        built(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}"], log := programs / "log", cwd=programs)
        told = re.search(r'"GoMod": "(.*)"', log.read_text())
        if told is None:
            raise ToolError(f"go does not say where it put k8s.io/kubernetes ({log})")
        (programs / "go.mod").write_text(_module(Path(told[1]).read_text()))
        stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={VERSION}"
        for name, package in missing.items():
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
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
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
    """An API server over an etcd of its own, and the controllers of what the chart has."""
    work.mkdir(parents=True)
    etcd_port, peer_port, port = free_ports(3)
    etcd, peer = f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer_port}"
    key = work / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    (work / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    server = Server(f"https://127.0.0.1:{port}")
    (work / "kubeconfig").write_text(json.dumps(_kubeconfig(server.address)))
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
        "kube-controller-manager": [
            "--kubeconfig", work / "kubeconfig", "--leader-elect=false", "--secure-port", "0",
            "--service-account-private-key-file", key, "--controllers", ",".join(_CONTROLLERS),
        ],
    }  # fmt: skip
    processes = []
    try:
        for name, words in lines.items():
            if name == "kube-controller-manager":  # it ends where it finds no server

                def ended_or_ready() -> bool:
                    if any(process.poll() is not None for process in processes):
                        raise ToolError(f"no API server comes up; {work} has the logs")
                    return server.ready()

                wait(ended_or_ready, f"an API server that is ready; {work} has the logs")
            with open(work / f"{name}.log", "wb") as log:
                processes.append(subprocess.Popen([programs / name, *words], stdout=log, stderr=log))
        yield server
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def _kubeconfig(address: str) -> dict[str, Any]:
    cluster = {"name": "tests", "cluster": {"server": address, "insecure-skip-tls-verify": True}}
    context = {"name": "tests", "context": {"cluster": "tests", "user": "tests"}}
    user = {"name": "tests", "user": {"token": TOKEN}}
    kinds = {"apiVersion": "v1", "kind": "Config", "current-context": "tests"}
    return kinds | {"clusters": [cluster], "contexts": [context], "users": [user]}


def wait(condition: Callable[[], bool], what: str) -> None:
    """Wait for a part of the cluster. Raises `ToolError`."""
    try:
        eventually(condition, what, _STARTS_WITHIN_S)
    except AssertionError as e:
        raise ToolError(str(e)) from e
