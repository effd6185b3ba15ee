"""`make compat`: other projects' suites, old and new clients, Kafka's tools and programs at brokers."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks/peers"), str(ROOT / "benchmarks")]

from compat import (  # noqa: E402 - the path comes first
    brokers,
    chart,
    clients,
    confluent_python,
    copier,
    franz_go,
    images,
    java_consumers,
    kafka_brokers,
    kafka_programs,
    kafka_python,
    kafka_scripts,
    kafka_tools,
    kafka_uis,
    kubernetes,
    librdkafka,
    listing,
    mirror_from_kafka,
    registries,
    schedules,
    spark_cluster,
)
from compat.suite import CLASSIC, CONSUMER, FAILED, GROUP_PROTOCOL, PASSED, Outcome, ToolError  # noqa: E402 - the path comes first

SUITES = (
    clients.SUITE,
    copier.SUITE,
    kafka_tools.SUITE,
    kafka_uis.SUITE,
    kafka_programs.SUITE,
    mirror_from_kafka.SUITE,
    registries.SUITE,
    franz_go.SUITE,
    librdkafka.SUITE,
    java_consumers.SUITE,
    confluent_python.SUITE,
    kafka_python.SUITE,
    images.SUITE,
    chart.SUITE,
    kubernetes.SUITE,
    schedules.SUITE,
    spark_cluster.SUITE,
)
# Those that run at brokers of any kind.
OF_CLIENTS = (franz_go.SUITE, librdkafka.SUITE, java_consumers.SUITE, confluent_python.SUITE, kafka_python.SUITE)
PYTEST = {tests.name: tests for tests in (confluent_python.TESTS, kafka_python.TESTS)}
TIDELOG, KAFKA = "tidelog", "kafka"
BUILT = ROOT / ".venv/compat"
PROGRAMS = ROOT / ".venv/programs"
# As the clusters of these suites are set up.
_AUTO, _NO_AUTO = {"num.partitions": "4"}, {"num.partitions": "4", "auto.create.topics.enable": "false"}


def main() -> int:
    """Run what is asked for; 1 when a test that the list calls passed did not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=SUITES, action="append", help="only this suite; may be given again")
    parser.add_argument("--only", default="", help="only tests with this in their names")
    parser.add_argument(
        "--protocol", choices=(CLASSIC, CONSUMER), action="append", help="groups' protocol, of suites that take either"
    )
    parser.add_argument(
        "--at",
        choices=(TIDELOG, KAFKA),
        default=TIDELOG,
        help=f"whose brokers; Kafka's of {kafka_brokers.VERSION} tell what fails there, too, and nothing is written",
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build/compat", help="where lakes and logs go")
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="where programs are that no package has")
    parser.add_argument("--write", action="store_true", help="write what was found into the list")
    given = parser.parse_args()
    suites = given.suite or (OF_CLIENTS if given.at == KAFKA else SUITES)
    if given.at == KAFKA and (given.write or not set(suites) <= set(OF_CLIENTS)):
        parser.error(f"at Kafka's brokers run {', '.join(OF_CLIENTS)}, and what is found there is not of the list")
    found, missing = [], []
    for suite in suites:
        print(f"\n== {suite} ==", flush=True)
        try:
            work = given.work / f"{suite}-{os.getpid()}"
            asked = SuiteChoices(
                given.only, given.protocol or [CLASSIC, CONSUMER], given.programs, given.write, given.at
            )
            for one in outcomes(suite, work, asked):
                print(f"{one.state:8} {one.took_s:6.1f} s  {one.test}  {one.words}".rstrip(), flush=True)
                found.append(one)
        except (ToolError, FileNotFoundError) as error:
            missing.append(f"{suite}: {error}")
    listed = listing.read()
    problems = missing + listing.worse(listed, found)
    if given.write:
        listing.write(listing.merged(listed, found))
    passed, failed = (sum(one.state == state for one in found) for state in (PASSED, FAILED))
    print(*["", *problems] if problems else [""], sep="\n")
    print(f"{passed} passed, {failed} failed, {len(found) - passed - failed} skipped")
    return 1 if problems else 0


class SuiteChoices(NamedTuple):
    """What a run is to do. `only`: a part of a name; `programs`: a folder of some; `write`: keep what is found.

    `at`: whose brokers.
    """

    only: str
    protocols: Sequence[str]
    programs: Path
    write: bool
    at: str


def outcomes(suite: str, work: Path, asked: SuiteChoices) -> Iterator[Outcome]:
    """Build a suite, start brokers, and run it."""
    only = asked.only
    with ExitStack() as stack:

        def started(name: str, configuration: dict[str, str], processes: int = 3) -> str:
            if asked.at == KAFKA:
                return stack.enter_context(kafka_brokers.running(work / name, configuration))
            return stack.enter_context(brokers.running(work / name, configuration, os.environ, processes=processes))

        if suite == clients.SUITE:
            yield from clients.outcomes(work, only)
        elif suite == copier.SUITE:
            yield from copier.outcomes(work, only)
        elif suite == chart.SUITE:
            yield from chart.outcomes(only, write=asked.write)
        elif suite == images.SUITE:
            yield from images.outcomes(work, only)
        elif suite == schedules.SUITE:
            yield from schedules.outcomes(BUILT, work, only)
        elif suite == spark_cluster.SUITE:
            yield from spark_cluster.outcomes(work, only)
        elif suite == kubernetes.SUITE:
            yield from kubernetes.outcomes(BUILT, work, only)
        elif suite == registries.SUITE:
            yield from registries.outcomes(work, only)
        elif suite == franz_go.SUITE:
            package = franz_go.build(BUILT)
            yield from franz_go.outcomes(package, started("brokers", {}), work, only)
        elif suite == kafka_programs.SUITE:
            yield from kafka_programs.outcomes(work, only)
        elif suite == mirror_from_kafka.SUITE:
            yield from mirror_from_kafka.outcomes(work, only)
        elif suite == java_consumers.SUITE:
            home, address = java_consumers.build(BUILT), started("brokers", {})
            yield from java_consumers.outcomes(home, address, work, only, asked.protocols)
        elif suite in PYTEST:
            tests = PYTEST[suite]
            tree = tests.checkout(asked.programs)
            if tree is None:
                yield tests.absent()
                return
            python = tests.build(BUILT)
            if suite == kafka_python.SUITE:
                address = started("broker", _AUTO, processes=1)
                yield from tests.outcomes(python, tree, kafka_python.environment(tree, address), work, only)
                return
            address = started("brokers", {})
            for protocol in asked.protocols:
                told = {"BROKERS": address, GROUP_PROTOCOL: protocol}
                yield from tests.outcomes(python, tree, told, work, only, protocol)
        elif suite == kafka_tools.SUITE:
            yield from kafka_tools.outcomes(_kafka(), work, only)
        elif suite == kafka_uis.SUITE:
            yield from kafka_uis.outcomes(_kafka(), asked.programs, work, only)
        else:
            folder, kafka = librdkafka.build(BUILT), _kafka()
            scenarios = {"default": started("auto", _AUTO), librdkafka.NO_AUTO_CREATE: started("noauto", _NO_AUTO)}
            for protocol in asked.protocols:
                yield from librdkafka.outcomes(folder, scenarios, kafka, work / protocol, only, protocol)


def _kafka() -> Path:
    """Scripts like those of a Kafka distribution, with the jars that make bench-peers fetches."""
    import jars

    return kafka_scripts.scripts(BUILT / "kafka", jars.fetched(jars.BROKER))


if __name__ == "__main__":
    sys.exit(main())
