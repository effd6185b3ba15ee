"""kafka-python's own integration tests, of a checkout of its repository, whose client they try: the classic protocol.

Those of SASL and TLS are left out, as they start Kafka themselves.
"""

from collections.abc import Mapping
from pathlib import Path

from compat.pytest_suite import PytestSuite

SUITE = "kafka-python"
_OF = "test/integration/test_%s_integration.py"
TESTS = PytestSuite(
    SUITE,
    packages=("pytest", "pytest-timeout", "pytest-mock", "crc32c", "lz4", "python-snappy", "zstandard", "xxhash"),
    tests=tuple(_OF % name for name in ("consumer", "producer", "admin")),
)


def environment(tree: Path, address: str) -> Mapping[str, str]:
    """What tells the tests of brokers that are there."""
    return {"KAFKA_URI": f"kafka://{address.partition(',')[0]}", "KAFKA_VERSION": "4.2.0", "KAFKA_ROOT": str(tree)}
