"""A broker of Kafka itself for the suites: what fails at it as well is the suite's own matter, or the machine's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

VERSION = "4.2.0"
# As the clusters of the suites are set up, with ACLs that are empty, and with one broker.
_SETTINGS = {
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "true",
    "group.min.session.timeout.ms": "100",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}


@contextmanager
def running(folder: Path, configuration: Mapping[str, str]) -> Iterator[str]:
    """Kafka's broker of `VERSION` with this configuration; its address. All that it writes goes to the folder."""
    import broker
    import jars

    of = jars.broker(f"broker-{VERSION}", VERSION)
    with broker.cluster(folder, 1, {**_SETTINGS, **configuration}, of) as (one,):
        yield one.address
