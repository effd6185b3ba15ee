"""A lake's topics as live views in an in-memory database: they come, change and go with the topics."""

import logging
import threading
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from support.spark_queries import append
from support.waiting import eventually

import tidelog
from tidelog.log.base.errors import InvalidConfigError, StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.spark import topic_views
from tidelog.spark.topic_views import TopicViews


@pytest.fixture
def views(spark: SparkSession, lake: Lake) -> Iterator[TopicViews]:
    """Views that are looked after by hand."""
    kept = TopicViews(spark, lake, "tidelog")
    yield kept
    kept.close()


def shown(spark: SparkSession) -> list[str]:
    """Views in the database, and none of the session's own."""
    return sorted(row.tableName for row in spark.sql("SHOW TABLES IN tidelog").collect() if row.namespace)


def values(spark: SparkSession, view: str) -> list[str]:
    return sorted(row[0] for row in spark.sql(f"SELECT string(value) FROM tidelog.{view}").collect())


def test_a_topic_is_a_table_of_sql(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    lake.create_topic("orders")
    append(lake, "orders", "1", "2")
    views.refresh()
    assert values(spark, "orders") == ["1", "2"]
    columns = {row.col_name: row.data_type for row in spark.sql("DESCRIBE tidelog.orders").collect()}
    assert columns["value"] == "binary"
    assert columns["offset"] == "bigint"
    append(lake, "orders", "3")  # live: no look is needed
    assert values(spark, "orders") == ["1", "2", "3"]


@pytest.mark.parametrize(
    "write",
    [
        "DELETE FROM tidelog.t",
        "INSERT INTO tidelog.t (value) VALUES ('x')",
        "INSERT INTO tidelog.t SELECT * FROM tidelog.t",
        "UPDATE tidelog.t SET value = 'x'",
        "MERGE INTO tidelog.t t USING (SELECT 'x' v) s ON t.value = s.v WHEN MATCHED THEN DELETE",
    ],
)
def test_a_write_to_a_view_is_refused_with_tidelogs_sentence(
    spark: SparkSession, lake: Lake, views: TopicViews, write: str
) -> None:
    lake.create_topic("t")
    append(lake, "t", "1")
    views.refresh()
    with pytest.raises(PySparkException, match=r"^tidelog: only tidelog writes to a topic"):
        spark.sql(write)


def test_views_come_and_go_with_their_topics(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    lake.create_topic("a")
    views.refresh()
    assert shown(spark) == ["a"]
    lake.create_topic("b")
    lake.delete_topic("a")
    views.refresh()
    assert shown(spark) == ["b"]
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM tidelog.a")


@pytest.mark.parametrize("name", ["DataFrameQueryContextLogger", "SQLQueryContextLogger"])
def test_errors_of_two_threads_at_once_have_a_logger_that_takes_them(name: str) -> None:
    """PySpark makes it with the first error, and not for two threads at once: views are refreshed by one of them."""
    assert isinstance(logging.getLogger(name), PySparkLogger)


def test_odd_names_are_quoted(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    for name in ("my.topic-1", "select", "9", "CamelCase"):
        lake.create_topic(name)
        append(lake, name, name)
    views.refresh()
    assert values(spark, "`my.topic-1`") == ["my.topic-1"]
    assert values(spark, "`select`") == ["select"]
    assert values(spark, "`9`") == ["9"]
    assert values(spark, "CamelCase") == ["CamelCase"]


def test_what_was_deleted_of_a_segment_is_hidden(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    lake.create_topic("t", 1)
    append(lake, "t", "1", "2", "3")
    views.refresh()
    lake.delete_records("t", {0: 2})
    views.refresh()
    assert values(spark, "t") == ["3"]


def test_a_topic_that_is_made_again_is_another_one(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    lake.create_topic("t", 1)
    append(lake, "t", "old")
    views.refresh()
    lake.delete_topic("t")
    lake.create_topic("t", 2)
    append(lake, "t", "new")
    views.refresh()
    assert values(spark, "t") == ["new"]


def test_what_is_no_topic_hides_no_other(
    spark: SparkSession, lake: Lake, views: TopicViews, caplog: pytest.LogCaptureFixture
) -> None:
    lake.create_topic("good")
    lake.create_topic("bad", 1)
    lake.storage.put("bad/_delta_log/00000000000000000001.json", b"no entry")
    lake.storage.put("a folder/file", b"")
    with caplog.at_level(logging.INFO, "tidelog.spark"):
        views.refresh()
        views.refresh()
    assert shown(spark) == ["good"]
    assert [record.args[0] for record in caplog.records if record.args].count("bad") == 1


def test_nothing_is_in_the_metastore(spark: SparkSession, lake: Lake, views: TopicViews) -> None:
    lake.create_topic("t")
    views.refresh()
    assert "tidelog" not in {row.namespace for row in spark.sql("SHOW DATABASES").collect()}
    assert not {row.tableName for row in spark.sql("SHOW TABLES IN default").collect() if not row.isTemporary}


def test_a_session_keeps_views_by_itself(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("first")
    append(lake, "first", "1")
    assert tidelog.spark.session("again", lake=lake) is spark
    (kept,) = topic_views._kept
    try:
        assert shown(spark) == ["first"]
        assert values(spark, "first") == ["1"]
        lake.create_topic("second")
        eventually(lambda: shown(spark) == ["first", "second"], "the new topic has a view")
        lake.delete_topic("first")
        eventually(lambda: shown(spark) == ["second"], "the topic that is gone has none")
    finally:
        kept.close()
    assert shown(spark) == []


def test_it_looks_every_two_seconds() -> None:
    """So a new topic has its view within 5 s, where making it takes no longer than 3 s."""
    assert topic_views.LOOK_EVERY_S == 2.0


def test_a_session_with_another_database_is_refused(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(InvalidConfigError, match="in the database 'tidelog'"):
        tidelog.spark.session("again", lake=lake, database="other")


def test_the_first_views_are_made_before_a_session_is_returned(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes, and an error in it is the caller's."""
    seen: list[threading.Thread] = []

    def refresh(_: TopicViews) -> None:
        seen.append(threading.current_thread())
        raise StorageUnavailableError("away")

    monkeypatch.setattr(TopicViews, "refresh", refresh)
    with pytest.raises(StorageUnavailableError):
        TopicViews(None, lake, "tidelog").start()  # type: ignore[arg-type]
    assert seen == [threading.current_thread()]


def test_a_session_that_ends_ends_its_views(lake: Lake) -> None:

    class Context:
        """The context of a session that was stopped."""

        _jsc = None

    class Stopped:
        """Such a session."""

        sparkContext = Context()  # noqa: N815 - Spark's name

    views = TopicViews(Stopped(), lake, "tidelog")  # type: ignore[arg-type]
    views.start()
    assert views._thread is not None
    views._thread.join()
    assert not views._thread.is_alive()
