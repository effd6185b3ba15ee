"""Tables of rows: what is acknowledged lasts, every reader sees the same, and refusals are their caller's alone."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import entry, put_checkpoint
from support.row_tables import NAME, WORDS, Table, WordsFold, put, says, words

from tidelog.log.base.errors import (
    CorruptLogError,
    InvalidConfigError,
    NotATopicError,
    OutcomeUnknownError,
    StorageFullError,
    StorageUnavailableError,
    UnsupportedFormatError,
)
from tidelog.log.delta import layout
from tidelog.log.delta.actions import NO_PARTITION, Add, Remove, Txn, encode_entry
from tidelog.log.rows.rules import RowOutcome, row_stats_json
from tidelog.log.rows.state import RowState
from tidelog.log.upkeep.trim import trim


def state_of(log: Any) -> RowState[WordsFold]:
    log.look(lambda fold: None)
    state: RowState[WordsFold] = log.door.state
    return state


# --- reading and writing -----------------------------------------------------------------------------------


def test_a_table_that_nobody_wrote_to_is_empty_and_not_there() -> None:
    table = Table()
    assert words(table.log) == {}
    assert table.log.commit(lambda fold: RowOutcome([], len(fold))) == 0
    assert table.entries() == []
    assert table.log.version == -1


def test_the_newest_row_of_a_key_counts_here_and_elsewhere() -> None:
    table = Table()
    put(table.log, a=1, b=2)
    put(table.log, a=3)
    put(table.log, b=None)
    assert words(table.log) == words(table.reopened()) == {"a": 3}
    assert table.log.version == 3  # creation, and three entries


def test_a_decision_sees_what_others_committed_before() -> None:
    table = Table()
    other = table.reopened()
    put(other, n=1)

    def count(fold: WordsFold) -> RowOutcome[int]:
        n = fold.words["n"] + 1
        return RowOutcome([says("n", n)], n)

    assert table.log.commit(count) == 2
    assert other.commit(count) == 3
    assert words(table.log) == {"n": 3}


def test_a_refusal_writes_nothing_and_creates_nothing() -> None:
    table = Table()

    def refuse(fold: WordsFold) -> RowOutcome[None]:
        raise InvalidConfigError("no")

    with pytest.raises(InvalidConfigError, match="no"):
        table.log.commit(refuse)
    assert table.entries() == table.files() == []


# --- power, and stores that don't answer -------------------------------------------------------------------


def test_what_was_acknowledged_survives_a_power_loss_with_its_file() -> None:
    table = Table()
    for i in range(5):
        put(table.log, **{f"k{i}": i})
    table.storage.inner.lose_power()
    assert words(table.reopened()) == {f"k{i}": i for i in range(5)}
    assert len(table.files()) == 5


@pytest.mark.parametrize("phase", ["before", "after"])
def test_an_unknown_outcome_is_told_and_a_repeat_counts_once(phase: str) -> None:
    table = Table()
    put(table.log, n=1)

    def silent(method: str, path: str, at: str) -> None:
        if (method, at) == ("put_if_absent", phase) or method == "get":
            raise StorageUnavailableError("no answer")

    def add(fold: WordsFold) -> RowOutcome[int]:
        return RowOutcome([says("n", fold.words["n"] + 1)], fold.words["n"])

    table.log.look(lambda fold: None)
    real = table.storage.hook

    def once_tailed(method: str, path: str, at: str) -> None:
        if method == "put_if_absent":
            table.storage.hook = silent
            silent(method, path, at)

    table.storage.hook = once_tailed
    with pytest.raises(OutcomeUnknownError):
        table.log.commit(add)
    table.storage.hook = real
    assert words(table.log) == words(table.reopened()) == {"n": 1 if phase == "before" else 2}
    assert table.log.commit(add) == words(table.log)["n"] - 1


def test_a_full_disk_fails_all_that_share_the_entry_and_the_next_one_goes_on() -> None:
    table = Table()
    put(table.log, n=1)

    def full(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before"):
            raise StorageFullError("no space")

    table.storage.hook = full
    with pytest.raises(StorageFullError):
        put(table.log, n=2)
    table.storage.hook = lambda *call: None
    put(table.log, m=3)
    assert words(table.log) == words(table.reopened()) == {"n": 1, "m": 3}


# --- opening -----------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 9), min_size=1)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("checkpoint"), st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_a_checkpoint_and_what_follows_say_what_all_entries_say(steps: list[tuple[str, Any]]) -> None:
    table, expected = Table(), {}
    for what, given_words in [("put", {"a": 0}), *steps, *[("put", {"z": i}) for i in range(3)]]:
        if what == "put":
            put(table.log, **given_words)
            expected.update(given_words)
        elif what == "compact":
            table.log.chores.compact(fewest=2)
        else:
            put_checkpoint(table.storage, NAME, table.log.version)
    live, opened = state_of(table.log), state_of(table.reopened())
    assert opened == live
    assert opened.fold.words == {k: v for k, v in expected.items() if v is not None}
    assert [row for f in opened.files for row in opened.rows(f)] == [row for f in live.files for row in live.rows(f)]


def test_many_commits_leave_few_files_and_a_trimmed_log_opens() -> None:
    table = Table(log_checkpoint_interval="20", log_min_age_ms="10000")
    for i in range(200):
        put(table.log, **{f"k{i % 7}": i})
        table.clock.pass_s(1)
        table.lake.background.submit(lambda: None).result()
    assert len(state_of(table.log).files) < 50
    trim(table.storage, NAME, 10_000)
    assert len(table.entries()) < 60
    assert words(table.reopened()) == words(table.log) == {f"k{i % 7}": i for i in range(193, 200)}


def test_a_lost_file_is_made_up_for_by_the_entries_while_they_are_kept() -> None:
    table = Table()
    for i in range(30):
        put(table.log, n=i)
    put_checkpoint(table.storage, NAME, 10)
    table.storage.delete(table.files()[0])
    assert words(table.reopened()) == {"n": 29}


def test_two_processes_that_compact_at_once_do_it_once() -> None:
    table = Table()
    for i in range(40):
        put(table.log, n=i)
    other = table.reopened()
    words(other)

    def first(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before"):
            table.storage.hook = lambda *call: None
            assert other.chores.compact()

    table.storage.hook = first
    assert not table.log.chores.compact()
    assert words(table.log) == words(table.reopened()) == {"n": 39}
    assert len(table.files()) == 41  # one more than the rows' own, the loser's is gone


# --- what does not belong there ----------------------------------------------------------------------------


def put_entry(table: Table, *actions: Any, request: str | None, rows: tuple[Any, ...] = ()) -> None:
    info = entry(0, request=request).info
    data = encode_entry(actions, info)
    if request is None:
        body = orjson.loads(data.splitlines()[-1])
        del body["commitInfo"]["tidelog"]
        data = b"\n".join([*data.splitlines()[:-1], orjson.dumps(body)]) + b"\n"
    elif rows:
        body = orjson.loads(data.splitlines()[-1])
        body["commitInfo"]["tidelog"]["rows"] = list(rows)
        data = b"\n".join([*data.splitlines()[:-1], orjson.dumps(body)]) + b"\n"
    assert table.storage.put_if_absent(f"{NAME}/{layout.entry_path(len(table.entries()))}", data)


def appended(base: int, end: int, change: bool = True) -> Add:
    return Add("rows/x.parquet", NO_PARTITION, base, 100, 0, change, row_stats_json(end - base, 0, end - base - 1), end)


def end_is(end: int) -> Txn:
    return Txn(f"{layout.END_PREFIX}0", end)


@pytest.mark.parametrize(
    ("actions", "request_id", "rows", "why"),
    [
        ([appended(2, 3), end_is(3)], None, (), "not written by tidelog"),
        ([Remove("rows/y.parquet", NO_PARTITION, 0, 1, 0, True)], None, (), "not written by tidelog"),
        ([appended(2, 3), end_is(3)], "r", (), "appends 1 rows, and says 0"),
        ([appended(2, 4), end_is(4)], "r", ({"key": "a"},), "appends 2 rows, and says 1"),
        ([], "r", ({"key": "a"},), "appends 0 rows, and says 1"),
        ([appended(2, 3), end_is(3)], "r", ({"key": 7},), "none of 'words'.*'key' is 7"),
        ([appended(2, 3), end_is(3)], "r", ({"value": 7},), "none of 'words'.*KeyError"),
        ([appended(5, 6), end_is(6)], "r", ({"key": "a"},), "ends at 2"),
        ([appended(2, 3)], "r", ({"key": "a"},), "end of partition 0"),
    ],
)
def test_entries_that_break_the_format_stop_the_log(
    actions: list, request_id: str | None, rows: tuple, why: str
) -> None:
    table = Table()
    put(table.log, a=1, b=2)
    put_entry(table, *actions, request=request_id, rows=rows)
    for log in (table.log, table.reopened()):
        with pytest.raises(CorruptLogError, match=why):
            words(log)


def test_a_topic_is_no_table_of_rows_nor_the_other_way_round() -> None:
    table = Table()
    table.lake.create_topic("t")
    put(table.log, a=1)
    with pytest.raises(NotATopicError, match="'t' is a topic, not a table of 'words'"):
        words(table.lake.row_log("t", WORDS))
    with pytest.raises(NotATopicError, match=f"'{NAME}' is a table of 'words', not a topic"):
        table.lake.topic(NAME)
    assert table.lake_now().topics(internal=True) == ["t"]


def test_a_changed_schema_stops_it_at_the_head_of_the_log() -> None:
    table = Table()
    put(table.log, a=1)
    metadata = state_of(table.log).metadata
    assert metadata is not None
    changed = type(metadata)(
        metadata.table_id,
        NAME,
        metadata.schema.replace('"value"', '"worth"'),
        metadata.partition_columns,
        metadata.configuration,
        0,
    )
    put_entry(table, changed, request="r")
    with pytest.raises(UnsupportedFormatError, match="column 'value' is gone"):
        words(table.reopened())
