"""Helm installs, upgrades, tests and removes the chart at an API server whose controllers make its pods.

Namespaces enforce Kubernetes' restricted standard for pods, so a pod that asks for more is never made. No machine is
there: in place of kubelets `Machines` says of each pod that it is ready, or done where it is one that ends.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from compat.kubernetes_server import TOKEN, Server
from support.charts import CHART, NAMES, RELEASE, helm
from support.waiting import eventually

_LOOKS_EVERY_S = 0.1
# What makes pods that stay up, by the folder of its API.
_STAYING_UP = ("statefulsets", "deployments")


class Machines:
    """What kubelets would say of a namespace's pods. `made`: names of pods in the order in which they were made."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.made: list[str] = []
        self.paused = False
        self._server = server
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._known: set[str] = set()
        # The fewest brokers that were ready at any look since `count_brokers`.
        self.fewest = 0

    def pods(self) -> list[Any]:
        """The pods that are there."""
        listed: list[Any] = self._server.call("GET", self._pods)[1]["items"]
        return listed

    def uids(self) -> Mapping[str, str]:
        """{name: the pod's id}, which another pod of the same name does not have."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def count_brokers(self) -> None:
        """Begin to count how many brokers are ready at once."""
        self.made.clear()
        self.fewest = sum(map(_is_ready_broker, self.pods()))

    def look(self) -> None:
        """Say of each pod that has news that it is ready, or done."""
        pods = self.pods()
        self.fewest = min(self.fewest, sum(map(_is_ready_broker, pods)))
        for pod in sorted(pods, key=lambda one: str(one["metadata"]["creationTimestamp"])):
            metadata = pod["metadata"]
            if metadata["uid"] not in self._known:
                self._known.add(metadata["uid"])
                self.made.append(metadata["name"])
            if pod["status"].get("phase", "Pending") == "Pending" and not self.paused:
                status = _done() if _ends(pod) else _ready()
                self._server.call("PATCH", f"{self._pods}/{metadata['name']}/status", {"status": status}, _MERGE)


_MERGE = "application/merge-patch+json"


def _ends(pod: Any) -> bool:
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
    return "Job" in owners or "helm.sh/hook" in pod["metadata"].get("annotations", {})


def _ready() -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}


def _done() -> dict[str, Any]:
    return {"phase": "Succeeded"}


def _is_ready_broker(pod: Any) -> bool:
    is_broker = pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "broker"
    return is_broker and "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"


@contextmanager
def machines(server: Server, namespace: str) -> Iterator[Machines]:
    """Machines that look at a new namespace, of restricted pods."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    found, ended = Machines(server, namespace), threading.Event()

    def look_on() -> None:
        while not ended.wait(_LOOKS_EVERY_S):
            found.look()

    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


class _Release:
    """The chart in a namespace, by Helm."""

    def __init__(self, server: Server, namespace: str, values: str) -> None:
        self._server = server
        self.namespace = namespace
        self._values = ("--values", str(CHART / f"ci/{values}-values.yaml"))
        self._place = ("--namespace", namespace, "--kube-apiserver", server.address, "--kube-token", TOKEN)

    def _helm(self, *words: str) -> None:
        done = helm(*words, *self._place, "--kube-insecure-skip-tls-verify")
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self) -> None:
        self._helm("install", RELEASE, str(CHART), *self._values)

    def upgrade(self, **settings: str) -> None:
        settled = (word for name, value in settings.items() for word in ("--set", f"{name}={value}"))
        self._helm("upgrade", RELEASE, str(CHART), *self._values, *settled)

    def test(self) -> None:
        self._helm("test", RELEASE)

    def uninstall(self) -> None:
        self._helm("uninstall", RELEASE)

    def listed(self, group: str, plural: str) -> list[Any]:
        items: list[Any] = self._server.call("GET", f"/apis/{group}/namespaces/{self.namespace}/{plural}")[1]["items"]
        return items

    def is_up(self) -> bool:
        """Whether all that stays up is of the newest version, and ready."""
        for plural in _STAYING_UP:
            for one in self.listed("apps/v1", plural):
                wanted, status = one["spec"]["replicas"], one["status"]
                seen = status.get("observedGeneration") == one["metadata"]["generation"]
                counts = {status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
                if not seen or counts != {wanted}:
                    return False
        return True

    def await_up(self) -> None:
        def up() -> bool:
            refused = self.refused()
            assert refused == [], refused
            return self.is_up()

        eventually(up, f"all pods of {self.namespace} are there and ready")

    def refused(self) -> list[str]:
        """What the controllers were refused, in the server's words."""
        events = self._server.call("GET", f"/api/v1/namespaces/{self.namespace}/events")[1]["items"]
        return [event["message"] for event in events if event["reason"].startswith("FailedCreate")]

    def run_cron_jobs(self) -> None:
        """Run each CronJob now, as `kubectl create job --from` does, and wait for its end."""
        place = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        for cron in self.listed("batch/v1", "cronjobs"):
            name = f"{cron['metadata']['name']}-now"
            job = {"metadata": {"name": name}, "spec": cron["spec"]["jobTemplate"]["spec"]}
            status, said = self._server.call("POST", place, job)
            assert status == 201, said

            def succeeded(name: str = name) -> bool:
                refused = self.refused()
                assert refused == [], refused
                return bool(self._server.call("GET", f"{place}/{name}")[1]["status"].get("succeeded"))

            eventually(succeeded, f"{name} has made its pod")
            self._server.call("DELETE", f"{place}/{name}?propagationPolicy=Background")


def tests(server: Server) -> dict[str, Callable[[], None]]:
    """The tests, by name."""
    os.environ["KUBECONFIG"] = os.devnull  # Helm gets the address of the server
    found: dict[str, Callable[[], None]] = {
        f"installs {name}, with restricted pods": lambda name=name: _installs(server, name) for name in NAMES
    }
    found["replaces one broker after another"] = lambda: _replaces(server)
    found["a drain takes one broker at a time"] = lambda: _drains(server)
    found["makes no pod that asks for rights"] = lambda: _refuses(server)
    return found


def _installs(server: Server, values: str) -> None:
    release = _Release(server, f"restricted-{values}", values)
    with machines(server, release.namespace) as found:
        release.install()
        release.await_up()
        pods = found.pods()
        wanted = sum(one["spec"]["replicas"] for plural in _STAYING_UP for one in release.listed("apps/v1", plural))
        assert len(pods) == wanted > 0, (len(pods), wanted)
        accounts = server.call("GET", f"/api/v1/namespaces/{release.namespace}/serviceaccounts")[1]["items"]
        assert {pod["spec"]["serviceAccountName"] for pod in pods} <= {one["metadata"]["name"] for one in accounts}
        release.run_cron_jobs()
        release.test()
        release.uninstall()
        eventually(lambda: not found.pods(), f"no pod is left in {release.namespace}")


def _replaces(server: Server) -> None:
    """More replicas restart no broker, and another setting all of them, one after another."""
    release = _Release(server, "upgraded", "s3")
    with machines(server, release.namespace) as found:
        release.install()
        release.await_up()
        before = found.uids()
        release.upgrade(**{"brokers.replicas": "4"})
        release.await_up()
        assert before.items() <= found.uids().items()
        before = found.uids()
        found.count_brokers()
        release.upgrade(**{"brokers.replicas": "4", "brokers.config.num\\.partitions": "7"})
        release.await_up()
        brokers = [name for name in before if "-broker-" in name]
        assert found.made == sorted(brokers, reverse=True), found.made
        assert found.fewest == len(brokers) - 1
        after = found.uids()
        assert {name for name in before if after.get(name) == before[name]} == before.keys() - set(brokers)


def _drains(server: Server) -> None:
    """Of the brokers one may be evicted, and the next when it is ready again."""
    release = _Release(server, "drained", "s3")

    def evict(name: str) -> int:
        place = f"/api/v1/namespaces/{release.namespace}/pods/{name}/eviction"
        asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        return server.call("POST", place, asked)[0]

    def allowed() -> list[int]:
        budgets = release.listed("policy/v1", "poddisruptionbudgets")
        return [one["status"].get("disruptionsAllowed", 0) for one in budgets if "broker" in one["metadata"]["name"]]

    with machines(server, release.namespace) as found:
        release.install()
        release.await_up()
        first, second, *_ = sorted(name for name in found.uids() if "-broker-" in name)
        eventually(lambda: allowed() == [1], "the budget counts the brokers")
        found.paused = True
        assert evict(first) == 201
        assert evict(second) == 429
        found.paused = False
        release.await_up()
        eventually(lambda: allowed() == [1], "the budget counts the brokers again")
        assert evict(second) == 201


def _refuses(server: Server) -> None:
    """What the other tests rest on: a pod of the chart's with more rights is refused here."""
    release = _Release(server, "refusing", "s3")
    with machines(server, release.namespace):
        release.install()
        (brokers,) = release.listed("apps/v1", "statefulsets")
        container = {"name": "broker", "securityContext": {"allowPrivilegeEscalation": True}}
        wrong = {"spec": {"template": {"spec": {"containers": [container]}}}}
        place = f"/apis/apps/v1/namespaces/{release.namespace}/statefulsets/{brokers['metadata']['name']}"
        status, said = server.call("PATCH", place, wrong, "application/strategic-merge-patch+json")
        assert status == 200, said
        eventually(lambda: any("violates PodSecurity" in one for one in release.refused()), "the refusal is an event")
