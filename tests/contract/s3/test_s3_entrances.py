"""Every entrance reaches a lake on S3, by options and by the environment, and none shows a secret."""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from support.cli_calls import cli
from support.logs import values
from support.versitygw import S3Place, in_environment

import tidelog
from tidelog.admin import AdminClient, NewTopic
from tidelog.check.store import check_store
from tidelog.clients.settings import ConsumerSettings, ProducerSettings
from tidelog.jobs.on_spark.executor import LakeAddress
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.base.errors import StorageError
from tidelog.log.shared import shared_lake
from tidelog.log.storage.options import StoreOptions
from tidelog.sinks.options import parse_batch as parse_sink
from tidelog.sources.options import parse_batch as parse_source
from tidelog.sources.tasks import ReadTask

# By options: as each entrance takes them. By the environment: none.
Options = Mapping[str, str]


@pytest.fixture(params=["options", "environment"])
def told(request: pytest.FixtureRequest, s3: S3Place) -> Iterator[Options]:
    """The options that an entrance gets; without any, the environment has them."""
    by_options = request.param == "options"
    with in_environment({} if by_options else s3.environment):
        yield s3.options if by_options else {}


def test_a_lake(s3: S3Place, told: Options):
    with tidelog.Lake(s3.uri, options=told) as lake:
        lake.topic("t").append(values("a"))
        assert lake.options == told
    assert shared_lake(s3.uri, StoreOptions(told)).topics() == ["t"]
    assert check_store(s3.storage(), SystemClock(), SystemIds()).fit


def test_clients(s3: S3Place, told: Options):
    with AdminClient({"lake": s3.uri, **told}) as admin:
        admin.create_topics([NewTopic("t", 2)])["t"].result()
    with tidelog.Producer({"lake": s3.uri, "storage.options": dict(told)}) as producer:
        producer.produce("t", b"a", partition=1)
        producer.flush()
    with tidelog.Consumer({"lake": s3.uri, "group.id": "g", "auto.offset.reset": "earliest", **told}) as consumer:
        consumer.subscribe(["t"])
        message = consumer.poll(30)
        assert message is not None
        assert (message.partition(), message.value()) == (1, b"a")


def test_the_command_line(s3: S3Place, told: Options):
    words = [word for name, value in told.items() for word in ("--store-option", f"{name}={value}")]
    for command in (
        ["topic", "create", "t", "--lake", s3.uri, *words],
        ["--lake", s3.uri, *words, "produce", "t"],
        ["topic", *words, "--lake", s3.uri, "list"],
        ["check", "--deep", "--lake", s3.uri, *words],
        ["check", "--store", s3.uri, *words],
        ["maintain", "--lake", s3.uri, *words],
    ):
        result = cli(*command, stdin="a\n")
        assert result.exit_code == 0, result.output
        hidden(s3, result.output)
    assert cli("consume", "t", "-e", "-f", "%s", "--lake", s3.uri, *words).stdout == "a"


def test_an_unknown_option_is_refused_at_every_entrance(s3: S3Place):
    wrong = {"lake.s3.secret.acces.key": s3.secret_access_key}
    entrances: list[Callable[[], Any]] = [
        lambda: tidelog.Lake(s3.uri, options=wrong),
        lambda: tidelog.Producer({"lake": s3.uri, **wrong}).flush(),
        lambda: tidelog.Consumer({"lake": s3.uri, "group.id": "g", **wrong}),
        lambda: AdminClient({"lake": s3.uri, **wrong}),
        lambda: parse_sink({"lake": s3.uri, **wrong}, None),
        lambda: parse_source({"lake": s3.uri, "subscribe": "t", **wrong}, None),
    ]
    for entrance in entrances:
        with pytest.raises(Exception, match=r"nearest known one is 'lake\.s3\.secret\.access\.key'") as caught:
            entrance()
        hidden(s3, "".join(traceback.format_exception(caught.value)))


# --- secrets -------------------------------------------------------------------------------------------------


def hidden(s3: S3Place, *texts: str) -> None:
    """None of the texts holds a key or its secret."""
    for text in texts:
        assert s3.access_key_id not in text
        assert s3.secret_access_key not in text


def test_nothing_that_is_printed_shows_a_secret(s3: S3Place):
    told = {"lake": s3.uri, **s3.options}
    address = LakeAddress(s3.uri, StoreOptions(s3.options))
    sink, source = parse_sink({**told, "topic": "t"}, None), parse_source({**told, "subscribe": "t"}, None)
    settings = [
        ProducerSettings.parse(told),
        ConsumerSettings.parse({"lake": s3.uri, "group.id": "g", "storage.options": s3.options}),
    ]
    with tidelog.Lake(s3.uri, options=s3.options) as lake, tidelog.Producer(told) as producer:
        shown = [lake, lake.options, lake.storage, vars(lake), vars(lake.storage), producer, vars(producer)]
        task = ReadTask(s3.uri, (), include_headers=False, store=source.store)
        hidden(s3, *map(repr, [*shown, *settings, sink, source, task, address]))
        assert sink.store == source.store == lake.options == s3.options


WRONG = {
    "wrong secret": {"lake.s3.secret.access.key": "wrongwrongwrongwrong"},
    "nobody there": {"lake.s3.endpoint": "http://127.0.0.1:1", "lake.store.retries": "0"},
}


@pytest.mark.parametrize("case", WRONG)
def test_no_error_and_no_log_shows_a_secret(s3: S3Place, case: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    options = {**s3.options, **WRONG[case]}
    with pytest.raises(StorageError) as caught:
        tidelog.Lake(s3.uri, options=options)
    texts = ["".join(traceback.format_exception(caught.value))]
    with pytest.raises(tidelog.KafkaException) as refused:
        AdminClient({"lake": s3.uri, **options}).list_topics(timeout=10)
    texts.append("".join(traceback.format_exception(refused.value)))
    words = [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]
    texts.append(cli("topic", "list", "--debug", "--lake", s3.uri, *words).output)
    hidden(s3, *texts, caplog.text)
    assert not any("wrongwrong" in text for text in [*texts, caplog.text])
    assert all(s3.uri in text for text in texts)


def test_nothing_that_is_stored_holds_a_secret(s3: S3Place):
    with tidelog.Producer({"lake": s3.uri, **s3.options}) as producer:
        producer.produce("t", b"a")
        producer.flush()
    stored = [path for path in s3.folder.rglob("*") if path.is_file()]
    assert stored
    for path in stored:
        hidden(s3, path.read_bytes().decode("latin-1"), str(path))
