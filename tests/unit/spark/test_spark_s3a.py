"""The settings of Hadoop's s3a, from a store's options and the environment; and that its jars fit pyspark's."""

from pathlib import Path

import pyspark
import pytest

from tidelog.log.base.errors import InvalidConfigError
from tidelog.spark.s3a import HADOOP_VERSION, hadoop_address, s3a_settings, session_settings

KEYS = {"lake.s3.access.key.id": "AKIAOPTION", "lake.s3.secret.access.key": "option-secret"}
ENVIRONMENT_KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAENVIRONMENT",
    "AWS_SECRET_ACCESS_KEY": "environment-secret",
    "AWS_SESSION_TOKEN": "environment-token",
}
BY_KEY = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
BY_TOKEN = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"

TOLD: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {
    "nothing": ({}, {}, {}),
    "a region": ({"lake.s3.region": "eu-west-1"}, {}, {"endpoint.region": "eu-west-1"}),
    "the environment's region": ({}, {"AWS_REGION": "eu-west-1"}, {"endpoint.region": "eu-west-1"}),
    "an option is before the environment": (
        {"lake.s3.region": "eu-west-1"},
        {"AWS_REGION": "us-east-2"},
        {"endpoint.region": "eu-west-1"},
    ),
    "an endpoint": (
        {"lake.s3.endpoint": "https://s3.example"},
        {},
        {"endpoint": "https://s3.example", "connection.ssl.enabled": "true", "path.style.access": "true"},
    ),
    "an endpoint without TLS": (
        {},
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:7070"},
        {"endpoint": "http://127.0.0.1:7070", "connection.ssl.enabled": "false", "path.style.access": "true"},
    ),
    "the bucket in the host's name": ({"lake.s3.path.style.access": "false"}, {}, {"path.style.access": "false"}),
    "keys, and none of the environment's token": (
        KEYS,
        ENVIRONMENT_KEYS,
        {"access.key": "AKIAOPTION", "secret.key": "option-secret", "aws.credentials.provider": BY_KEY},
    ),
    "keys with a token": (
        {**KEYS, "lake.s3.session.token": "option-token"},
        {},
        {
            "access.key": "AKIAOPTION",
            "secret.key": "option-secret",
            "session.token": "option-token",
            "aws.credentials.provider": BY_TOKEN,
        },
    ),
    "the environment's keys": (
        {},
        ENVIRONMENT_KEYS,
        {
            "access.key": "AKIAENVIRONMENT",
            "secret.key": "environment-secret",
            "session.token": "environment-token",
            "aws.credentials.provider": BY_TOKEN,
        },
    ),
}


@pytest.mark.parametrize(("options", "environment", "expected"), TOLD.values(), ids=TOLD)
def test_s3a_is_told_what_the_store_is(
    options: dict[str, str], environment: dict[str, str], expected: dict[str, str]
) -> None:
    settings = {f"fs.s3a.{name}": value for name, value in expected.items()}
    assert s3a_settings(options, environment) == settings
    session = session_settings(options, environment)
    assert session == {f"spark.hadoop.{k}": v for k, v in settings.items()} | {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"
    }


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"nearest known one is 'lake\.s3\.region'"):
        s3a_settings({"lake.s3.regoin": "r"}, {})


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket/lake", "s3a://bucket/lake"),
        ("s3a://bucket/lake", "s3a://bucket/lake"),
        ("gs://bucket/lake", "gs://bucket/lake"),
        ("file:///s3://x", "file:///s3://x"),
    ],
)
def test_hadoop_calls_s3_s3a(uri: str, expected: str) -> None:
    assert hadoop_address(uri) == expected


def test_the_jars_are_of_pysparks_hadoop() -> None:
    """With another version s3a fails when it is first used, for want of methods."""
    inside = [path.name for path in (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")]
    assert inside == [f"hadoop-client-api-{HADOOP_VERSION}.jar"]
