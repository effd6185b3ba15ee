"""A lake's topics as live views in a database of the session: `SELECT … FROM tidelog.orders`.

They are Spark's global temporary views, whose database a session can name before it starts: they are in the driver's
memory, end with it, and are in no metastore.
"""

import logging
import threading
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidelog.log.base.errors import InvalidConfigError, TidelogError
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.log.typed.facts import typing_of
from tidelog.spark.native import hidden_below, read_topic

logger = logging.getLogger("tidelog.spark")

# The database of global temporary views, which a session has from its start.
DATABASE_KEY: Final = "spark.sql.globalTempDatabase"
# New topics are looked for at this interval. On an object store those that are known are looked at less often: each
# look costs a request a topic.
LOOK_EVERY_S: Final = 2.0
SHARED_EVERY_S: Final = 30.0


@dataclass(slots=True)
class _View:
    """A view that is there, and what it was made of: of another state it is made again."""

    topic: str
    made_of: tuple[object, ...]


@dataclass(slots=True)
class TopicViews:
    """Keeps a view for each topic of a lake while the session lives. `start` once; `refresh` is one look.

    `database`: the session's database of global temporary views. Views are named as their topics, whatever their
    letters: SQL quotes those that are no plain words. Of topics that differ in case alone, the first by name has one.
    """

    spark: SparkSession
    lake: Lake
    database: str
    _views: dict[str, _View] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _looked_s: float = float("-inf")
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Make the views of the topics that are there, here, and look after them in the background from now on."""
        self.refresh()
        self._thread = threading.Thread(target=self._keep, name="tidelog-views", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Keep no views any more, and drop those that are there."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        for key in list(self._views):
            self._drop(key)

    def _keep(self) -> None:
        while self._session_lives() and not self._ended.wait(LOOK_EVERY_S):
            try:
                self.refresh()
            except TidelogError as e:
                logger.warning("The views of %s are as they were: %s", self.lake.uri, e)
            except (PySparkException, Py4JError):
                if self._session_lives():
                    logger.warning("The views of %s are as they were.", self.lake.uri, exc_info=True)

    def _session_lives(self) -> bool:
        context = self.spark.sparkContext._jsc
        try:
            return context is not None and not context.sc().isStopped()
        except (Py4JError, OSError):  # the JVM is gone
            return False

    def refresh(self) -> None:
        """Look once: make the views of new and changed topics, and drop those of topics that are gone."""
        now_s = self.lake.clock.elapsed_s()
        everything = now_s - self._looked_s >= (SHARED_EVERY_S if self.lake.storage.is_shared else 0.0)
        if everything:
            self._looked_s = now_s
        there = [name for name in self.lake.storage.list_folders("") if not names.is_internal(name)]
        wanted: dict[str, str] = {}
        for name in there:
            wanted.setdefault(name.lower(), name)
        for key, name in wanted.items():
            if self._ended.is_set():
                return
            known = self._views.get(key)
            if known is None or known.topic != name or everything:
                self._look(key, name)
        for key in [key for key in self._views if key not in wanted]:
            self._drop(key)

    def _look(self, key: str, name: str) -> None:
        try:
            state = self.lake.topic(name).state()
        except TidelogError as e:
            if e.retriable:
                raise
            self._not_shown(key, name, e)
            return
        made_of = _made_of(state)
        known = self._views.get(key)
        if known is not None and (known.topic, known.made_of) == (name, made_of):
            return
        try:
            columns = _has_columns(state)
            read_topic(self.spark, self.lake, name, columns=columns).createOrReplaceGlobalTempView(f"`{name}`")
        except TidelogError as e:
            self._not_shown(key, name, e)
            return
        self._views[key] = _View(name, made_of)
        self._failed.pop(name, None)

    def _not_shown(self, key: str, name: str, why: TidelogError) -> None:
        """No view of this folder: it is no topic, or a topic that is gone or can't be read."""
        self._drop(key)
        if self._failed.get(name) != str(why):
            self._failed[name] = str(why)
            logger.info("There is no view of '%s': %s", name, why)

    def _drop(self, key: str) -> None:
        view = self._views.pop(key, None)
        if view is not None and self._session_lives():
            self.spark.catalog.dropGlobalTempView(view.topic)


def _made_of(state: TopicState) -> tuple[object, ...]:
    """What a view is made of, beside the table that it reads live."""
    metadata = state.metadata
    return (
        state.topic_id,
        hidden_below(state),
        None if metadata is None else metadata.schema,
        _has_columns(state),
    )


def _has_columns(state: TopicState) -> bool:
    metadata = state.metadata
    return metadata is not None and typing_of(metadata) is not None and f'"{schema.COLUMNS}"' in metadata.schema


def require_database(spark: SparkSession, database: str) -> None:
    """Refuse a session that began with another database. Raises `InvalidConfigError`."""
    current_database = str(spark.conf.get(DATABASE_KEY, "global_temp"))
    if current_database != database:
        raise InvalidConfigError(
            f"A session runs whose temporary views are in the database '{current_database}', which can't change any"
            f" more. Stop it, start it by tidelog.spark.session(lake=…), or by {DATABASE_KEY}={database}."
        )


_LOCK: Final = threading.Lock()
_kept: list[TopicViews] = []


def keep_views(spark: SparkSession, lake: Lake, database: str) -> TopicViews:
    """Keep views of a lake's topics in a session from now on; those of another lake that it had are dropped."""
    require_database(spark, database)
    with _LOCK:
        for one in _kept:
            one.close()
        views = TopicViews(spark, lake, database)
        _kept[:] = [views]
    views.start()
    return views
