"""confluent-kafka-python's own integration tests, of a checkout of its repository: its package has none.

They are those of consumers, producers and of its AdminClient; what asks for share groups is left out.
"""

from compat.pytest_suite import PytestSuite

SUITE = "confluent-kafka-python"
TESTS = PytestSuite(
    SUITE,
    packages=(
        "confluent-kafka[avro,json,protobuf,schemaregistry]==2.16.1",
        *("trivup==0.12.2", "pytest", "pytest-timeout", "pytest-asyncio", "pyyaml"),
    ),
    tests=("tests/integration/consumer", "tests/integration/admin", "tests/integration/producer"),
)
