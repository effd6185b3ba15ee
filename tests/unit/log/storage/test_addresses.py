"""Addresses that lead to a lake, and those that are refused: with what to write instead, at every entrance."""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import pytest

from tidelog import AdminClient, Consumer, KafkaException, Lake, Producer
from tidelog.log.base.errors import InvalidUriError, TidelogError
from tidelog.log.storage import open_storage
from tidelog.log.storage.addresses import Address, parse_address, why_wrong
from tidelog.sinks import options as sink_options
from tidelog.sources import options as source_options

HOME = os.path.expanduser("~")

GOOD = {
    "/data/lake": Address("file", "/data/lake"),
    "lake": Address("file", "lake"),
    "../a b/lake": Address("file", "../a b/lake"),
    "./localhost:9092": Address("file", "./localhost:9092"),
    "/data/2024-01-01T00:00/lake": Address("file", "/data/2024-01-01T00:00/lake"),
    "s3lake/x": Address("file", "s3lake/x"),
    "data/~old": Address("file", "data/~old"),
    "/data/søppel": Address("file", "/data/søppel"),
    "file:/data": Address("file", "/data"),
    "FILE:///data": Address("file", "/data"),
    "memory://m/": Address("memory", "m"),
    "S3://bucket/Lake": Address("s3", "s3://bucket/Lake"),
    "s3a://my.bucket_1/a/b/": Address("s3a", "s3a://my.bucket_1/a/b/"),
    "gs://bucket": Address("gs", "gs://bucket"),
    "az://container/a b": Address("az", "az://container/a b"),
    "abfss://c@acct.dfs.core.windows.net/p": Address("abfss", "abfss://c@acct.dfs.core.windows.net/p"),
    "abfs://c/p": Address("abfs", "abfs://c/p"),
}

# What was written, and what the refusal advises.
WRONG = {
    "": "is empty. Give a folder's path or an address, such as /data/lake or s3://bucket/lake",
    " \t": "is empty",
    # of Kafka's brokers
    "localhost:9092": "Kafka brokers.*a folder of that name is './localhost:9092'",
    "localhost": "Kafka brokers",
    "10.0.0.1": "Kafka brokers",
    "[::1]:9092": "Kafka brokers",
    "a.example:9092, b.example:9092": "Kafka brokers",
    "PLAINTEXT://a:9092": "Kafka brokers",
    "kafka://a": "Kafka brokers",
    # schemes that are nearly right, or another program's
    "s3:/bucket/lake": "nearly 's3://bucket/lake'",
    "s3:bucket/lake": "nearly 's3://bucket/lake'",
    "S3:///bucket/lake": "names no bucket. Write S3://bucket/bucket/lake",
    "s3//bucket/lake": "nearly 's3://bucket/lake'",
    "gs:/bucket": "nearly 'gs://bucket'",
    "az:container/x": "nearly 'az://container/x'",
    "abfss:/c@a.dfs.core.windows.net/p": "nearly 'abfss://c@a.dfs.core.windows.net/p'",
    "memory:m": "nearly 'memory://m'",
    "/srv/s3:/bucket/lake": "joined to a path. Write 's3://bucket/lake'",
    "file:///srv/gs:/bucket": "Write 'gs://bucket'",
    "s3n://b/l": "'s3n://' is unknown.*Write s3://bucket/path",
    "gcs://b/l": "Write gs://bucket/path",
    "wasbs://c@a.blob.core.windows.net/p": "Write abfss://container@account",
    "dbfs:/mnt/lake": "'dbfs://' is unknown.*Write /dbfs/path",
    "hdfs://namenode/lake": "'hdfs://' is unknown.*A lake lives in a local folder",
    "https://bucket.s3.eu-north-1.amazonaws.com/lake": "Write s3://bucket/path",
    "https://storage.googleapis.com/b/l": "Write gs://bucket/path",
    "https://acct.blob.core.windows.net/c/p": "Write az://container/path",
    "http://127.0.0.1:9000/b": "Write s3://bucket/path",
    "a:b": "Write './a:b' for a folder of that name",
    "file:lake": "names no folder. Write 'lake'",
    "file://lake": "the host 'lake'.*file:///data/lake",
    "memory://": "can't name a store in memory",
    "memory://a/b": "can't name a store in memory",
    # what a shell would have replaced
    "~": f"Write '{HOME}'",
    "~/lake": f"begins with '~'.*Write '{HOME}/lake'; a folder of that name is './~/lake'",
    "~nobody-of-that-name/lake": "Write the folder's whole path",
    "file://~/lake": f"Write '{HOME}/lake'",
    "$HOME/lake": r"holds \$HOME, which only a shell replaces",
    "s3://${BUCKET}/lake": r"holds \$\{BUCKET\}",
    "/data/$(hostname)": r"holds \$\(hostname\)",
    # paths of Windows
    "C:\\lake": "Windows.*Under WSL write '/mnt/c/lake'",
    "c:/data/lake": "'/mnt/c/data/lake'",
    "file:///C:/lake": "'/mnt/c/lake'",
    "C://lake": "'/mnt/c/lake'",
    "data\\lake": "Write 'data/lake'",
    "s3:\\\\bucket\\lake": "Write 's3://bucket/lake'",
    # what surrounds an address
    "'/data/lake'": "quotation marks of its own. Write /data/lake",
    '"s3://b/l"': "Write s3://b/l",
    " /data/lake": "blanks around it. Write '/data/lake'",
    "/data/lake\n": "can't be seen",
    "/data/\x00": "can't be seen",
    "/data/\u200blake": "can't be seen",
    # buckets
    "s3://": "names no bucket. Write s3://bucket/lake",
    "az://": "names no container. Write az://container/lake",
    "abfss://acct.dfs.core.windows.net/p": "names no container. Write abfss://container@acct.dfs.core.windows.net/p",
    "s3://localhost:9000/bucket/lake": "Write s3://bucket/lake, and the server as the option lake.s3.endpoint=http://localhost:9000",
    "s3://<bucket>/lake": "can't be the name of a bucket",
    "s3://bucket//lake": "Write s3://bucket/lake without",
    "gs://bucket/a/../lake": "has an empty part, '.' or '..'",
    "s3://bucket/lake?versionId=1": "Write the plain address",
    "s3://bucket/a%20b": "Write the plain address",
}


@pytest.mark.parametrize(("text", "address"), GOOD.items(), ids=GOOD)
def test_addresses(text: str, address: Address):
    assert parse_address(text) == address
    assert parse_address(address.place if address.scheme != "memory" else text) == address


@pytest.mark.parametrize(("text", "advice"), WRONG.items(), ids=map(repr, WRONG))
def test_addresses_that_are_refused(text: str, advice: str):
    assert re.search(advice, why_wrong(text) or ""), why_wrong(text)
    with pytest.raises(InvalidUriError, match=advice):
        open_storage(text)


def test_an_address_that_became_a_path_is_known():
    with pytest.raises(InvalidUriError, match="nearly 's3://bucket/lake'"):
        parse_address(PurePath("s3://bucket/lake"))
    with pytest.raises(InvalidUriError, match="Write 's3://bucket/lake'"):
        parse_address(os.path.abspath("s3://bucket/lake"))


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hunter2hunter2@bucket/lake",
        "s3://AKIA:hunter2@bucket:9000/lake",
        "https://x/?sig=hunter2",
        "s3://b/l?sig=hunter2",
        "kafka://me:hunter2@b:9092",
    ],
)
def test_passwords_in_an_address_are_refused_and_not_shown(text: str):
    for entrance in ENTRANCES.values():
        with pytest.raises((TidelogError, KafkaException)) as refusal:
            entrance(text)
        assert "hunter2" not in str(refusal.value)


# --- entrances ---------------------------------------------------------------------------------------------

ENTRANCES: dict[str, Callable[[str], Any]] = {
    "Lake": Lake,
    "Lake that is there": lambda a: Lake(a, create=False),
    "Producer": lambda a: Producer({"bootstrap.servers": a}),
    "Consumer": lambda a: Consumer({"bootstrap.servers": a, "group.id": "g"}),
    "AdminClient": lambda a: AdminClient({"bootstrap.servers": a}),
    "lake of a client": lambda a: Producer({"lake": a}),
    "source": lambda a: source_options.parse_batch({"lake": a, "subscribe": "t"}, None),
    "streaming source": lambda a: source_options.parse_stream({"subscribe": "t"}, a),
    "sink": lambda a: sink_options.parse_batch({"kafka.bootstrap.servers": a, "topic": "t"}, None),
    "streaming sink": lambda a: sink_options.parse_stream({"topic": "t"}, a),
}
SLIPS = ["localhost:9092", "s3:/bucket/lake", "~/lake", "C:\\lake"]


@pytest.mark.parametrize("text", SLIPS)
@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_no_entrance_makes_a_folder_of_them(
    entrance: Callable[[str], Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    why = why_wrong(text) or ""
    with pytest.raises((TidelogError, KafkaException)) as refusal:
        entrance(text)
    assert why.removesuffix(".") in str(refusal.value.args[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", SLIPS)
def test_a_client_refuses_them_in_the_environment(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDELOG_LAKE", text)
    with pytest.raises(KafkaException, match=re.escape((why_wrong(text) or "")[:40])):
        Producer({})
    assert list(tmp_path.iterdir()) == []
