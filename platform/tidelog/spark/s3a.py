"""Hadoop's S3 file system (s3a) for native reads: its jars, and its settings from a store's options.

The source and the sink don't need it, they reach a store by themselves.
"""

from collections.abc import Mapping
from typing import Final

from tidelog.log.storage.aws_profiles import read_profile
from tidelog.log.storage.options import connection, endpoints, store_options

# The Hadoop that pyspark has inside, and the AWS SDK that this one's s3a was built with.
HADOOP_VERSION: Final = "3.5.0"
SDK_VERSION: Final = "2.35.4"
# The parts of the SDK that s3a uses, 15 MB; the bundle that it asks for has all of AWS's services in 700 MB.
PACKAGES: Final = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP_VERSION}",
    *(
        f"software.amazon.awssdk:{part}:{SDK_VERSION}"
        for part in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    ),
)
EXCLUDED: Final = ("software.amazon.awssdk:bundle",)

# Delta's SQL may name a table as tidelog does, by s3://.
SCHEME_SETTINGS: Final = {"fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}

_PROVIDERS: Final = "org.apache.hadoop.fs.s3a"


def session_settings(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """A session's settings for a lake with these options: `s3a_settings` with Spark's prefix."""
    settings = {**SCHEME_SETTINGS, **s3a_settings(options, environment)}
    return {f"spark.hadoop.{key}": value for key, value in settings.items()}


def s3a_settings(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings (`fs.s3a...`) for a store with tidelog's options, which the environment completes.

    What neither says is left to s3a, which asks the machine's role for keys. With keys, only these count. Spark's own
    redaction hides the secret ones by their names. Raises `InvalidConfigError` as opening a lake does.
    """
    store = connection("s3", store_options(options), environment, lambda name: read_profile(name, environment))
    settings: dict[str, str] = {}
    # s3a knows one address: of several nodes the first.
    endpoint = next(iter(endpoints(store.config.get("endpoint", ""))), "")
    if endpoint:
        settings["fs.s3a.endpoint"] = endpoint
        settings["fs.s3a.connection.ssl.enabled"] = str(not endpoint.lower().startswith("http://")).lower()
    if region := store.config.get("region"):
        settings["fs.s3a.endpoint.region"] = region
    in_host = store.config.get("virtual_hosted_style_request")
    if endpoint or in_host is not None:
        settings["fs.s3a.path.style.access"] = str(in_host != "true").lower()
    keys = store.keys or {
        "access_key_id": store.config.get("access_key_id"),
        "secret_access_key": store.config.get("secret_access_key"),
        "token": store.config.get("session_token"),
    }
    if keys["access_key_id"] and keys["secret_access_key"]:
        settings |= _key_settings(keys["access_key_id"], keys["secret_access_key"], keys["token"])
    return settings


def _key_settings(key: str, secret: str, token: str | None) -> dict[str, str]:
    """By keys alone: else Spark would hand on the environment's token with them, and s3a use it."""
    settings = {"fs.s3a.access.key": key, "fs.s3a.secret.key": secret}
    if token:
        settings["fs.s3a.session.token"] = token
    provider = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
    return {**settings, "fs.s3a.aws.credentials.provider": f"{_PROVIDERS}.{provider}"}


def hadoop_address(uri: str) -> str:
    """An address as Hadoop names it: s3:// is s3a:// there, the others are as they are."""
    return f"s3a://{uri[5:]}" if uri.lower().startswith("s3://") else uri
