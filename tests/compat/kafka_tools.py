"""Kafka's own scripts, each in the forms that operators use: at brokers without users, and where clients log in.

What they print is judged, and what the lake then holds.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compat import brokers
from compat.kafka_cases import access, cluster, groups, topics, workers
from compat.kafka_scripts import WITHOUT_BROKERS, Tools
from compat.suite import FAILED, PASSED, SKIPPED, Outcome
from confluent_kafka import KafkaException
from support.kafka_clients import install
from support.kafka_programs import CONNECT
from support.kafka_users import ADMIN

from tidelog.log.base.errors import TidelogError

SUITE = "kafka-tools"
CASES: dict[str, Callable[[Tools], None]] = {
    "kafka-topics": topics.topics,
    "kafka-configs": topics.configs,
    "kafka-configs of users": access.users,
    "kafka-configs of quotas": access.quotas,
    "kafka-acls": access.acls,
    "kafka-console-producer, kafka-console-consumer": topics.console,
    "kafka-consumer-groups, kafka-groups": groups.lists,
    "kafka-consumer-groups with members": groups.members,
    "kafka-consumer-groups --reset-offsets": groups.resets,
    "kafka-consumer-groups --delete": groups.deletions,
    "kafka-delete-records": topics.delete_records,
    "kafka-get-offsets": topics.get_offsets,
    "kafka-verifiable-producer, kafka-verifiable-consumer": topics.verifiable,
    "kafka-producer-perf-test": topics.performance,
    "kafka-consumer-perf-test": topics.consumer_performance,
    "kafka-e2e-latency": topics.latency,
    "kafka-broker-api-versions": cluster.api_versions,
    "kafka-client-metrics": cluster.client_metrics,
    "kafka-cluster": cluster.cluster,
    "kafka-features": cluster.features,
    "kafka-leader-election": cluster.leader_election,
    "kafka-log-dirs": cluster.log_dirs,
    "kafka-metadata-quorum": cluster.metadata_quorum,
    "kafka-reassign-partitions": cluster.reassignments,
    "kafka-transactions": cluster.transactions,
    "kafka-streams-application-reset": groups.streams_reset,
    "kafka-streams-groups": groups.streams_groups,
    "connect-standalone": workers.standalone,
    "connect-distributed": workers.distributed,
    "connect-mirror-maker": workers.mirror_maker,
}
# It takes no settings of a client, so it can't log in.
WITHOUT_SASL: dict[str, Callable[[Tools], None]] = {"kafka-replica-verification": topics.replica_verification}
# What brokers do not offer, with the reason. They are run: the list says when one passes.
LATER: dict[str, tuple[Callable[[Tools], None], str]] = {
    "kafka-share-groups, kafka-console-share-consumer": (groups.share_groups, "brokers have no share groups"),
    "kafka-delegation-tokens": (access.delegation_tokens, "brokers have no delegation tokens"),
}


def outcomes(kafka: Path, work: Path, only: str = "") -> Iterator[Outcome]:
    """Run the cases, one after another. `only`: a part of a name."""
    for script, reason in WITHOUT_BROKERS.items():
        if only in script:
            yield Outcome(SUITE, script, SKIPPED, 0.0, reason)
    install(CONNECT)
    for mode, user, cases in (("", None, CASES | WITHOUT_SASL), (", SASL", ADMIN, CASES)):
        folder = work / ("sasl" if user else "open")
        with brokers.running(folder, {}, os.environ, user) as address:
            tools = Tools(kafka, address, user, folder / "clients", folder / "lake")
            tools.archive_classes()
            yield from _each(tools, cases, mode, only)


def _each(tools: Tools, cases: dict[str, Callable[[Tools], None]], mode: str, only: str) -> Iterator[Outcome]:
    for name, case in cases.items():
        if only in f"{name}{mode}":
            yield _outcome(f"{name}{mode}", tools, case)
    for name, (case, reason) in LATER.items():
        if only in f"{name}{mode}":
            ended = _outcome(f"{name}{mode}", tools, case)
            yield ended if ended.state == PASSED else Outcome(SUITE, ended.test, SKIPPED, ended.took_s, reason)


def _outcome(name: str, tools: Tools, case: Callable[[Tools], None]) -> Outcome:
    began, state, words = time.monotonic(), PASSED, ""
    try:
        case(tools)
    except (AssertionError, ValueError, subprocess.TimeoutExpired, KafkaException, TidelogError) as error:
        state, words = FAILED, " ".join(f"{type(error).__name__}: {error}".split())[:600]
    return Outcome(SUITE, name, state, time.monotonic() - began, words)
