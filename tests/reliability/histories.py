"""A history in which everything holds, and a table of faults to plant in it: what is found, where, and how."""

from collections.abc import Callable

from checkers import Kind
from history import Acked, Copy, History, Look, Partition, Policy, Rule, Sent, Stretch, Transaction

IN, A, B, OUT, OLD, NEW, QUICK = ("in", 0), ("a", 0), ("b", 0), ("out", 0), ("old", 0), ("new", 0), ("quick", 0)
EVEN, ODD = ("even", 0), ("odd", 0)
GROUP = "g"


def right() -> History:
    """A history in which everything holds: each kind of topic, transactions of each fate, a copier and its group."""
    history = History(
        rules={"old": Rule(Policy.EXPIRE), "new": Rule(Policy.COMPACT), "quick": Rule(once=False)},
        copies=[Copy(("in",), ("out",), GROUP), Copy(("a",), ("even", "odd"))],
    )
    produced(history, IN, 0, "p:1", "p:2", "p:3", "p:4")
    produced(history, OLD, 0, "o:1", "o:2", "o:3")
    history.log[OLD] = Partition(2, 3, [(2, None, "o:3")])
    produced(history, NEW, 0, "n:1", "n:2", "n:3", key="k")
    history.log[NEW].records = [(2, "k", "n:3")]
    produced(history, QUICK, 0, "q:1", "q:2")
    history.log[QUICK] = Partition(0, 3, [(0, None, "q:1"), (1, None, "q:2"), (2, None, "q:1")])
    transaction(history, "t#1", "committed", {A: ["t:1", "t:2"], B: ["t:3"]})
    transaction(history, "t#2", "aborted", {A: ["t:4"]}, there=False)
    transaction(history, "t#3", "", {A: ["t:5"], B: ["t:6"]})  # asked for, and never answered
    transaction(history, "t#4", "", {B: ["t:7"]}, there=False, asked=False)
    history.log[EVEN] = Partition(0, 2, [(0, None, "<a/0/0"), (1, None, "<a/0/2")])
    history.log[ODD] = Partition(0, 1, [(0, None, "<a/0/1")])
    transaction(history, "c#1", "committed", {OUT: ["c:1<in/0/0", "c:2<in/0/1"]})
    history.stretches += [
        Stretch("c.0", GROUP, IN, [(0, "p:1"), (1, "p:2"), (2, "p:3")]),
        Stretch("c.1", GROUP, IN, [(2, "p:3"), (3, "p:4")]),
        Stretch("r.0", "r", NEW, [(0, "n:1"), (2, "n:3")]),
        Stretch("r.0", "r", A, [(0, "t:1"), (1, "t:2"), (2, "t:5")]),
        Stretch("r.0", "r", OLD, [(0, "o:1"), (2, "o:3")]),
    ]
    history.committed = {(GROUP, IN): 2, ("r", A): 3}
    history.looks = [
        Look("w", {IN: (0, 2), OLD: (0, 3)}, {(GROUP, IN): 1}),
        Look("w", {IN: (0, 4), OLD: (2, 3)}),
        Look("v", {IN: (0, 1), OLD: (0, 1)}, {(GROUP, IN): 0}),
    ]
    return history


def produced(history: History, place: tuple[str, int], first: int, *values: str, key: str | None = None) -> None:
    """An idempotent producer sent these, got their offsets, and there they are."""
    one = history.log.setdefault(place, Partition(first, first))
    for value in values:
        sender, number = value.split(":")
        history.sent[value] = Sent(place[0], sender, int(number))
        history.acked.append(Acked(place, one.end, value, key))
        one.records.append((one.end, key, value))
        one.end += 1


def transaction(
    history: History,
    name: str,
    told: str,
    values: dict[tuple[str, int], list[str]],
    *,
    there: bool = True,
    asked: bool | None = None,
) -> None:
    """A transaction with values of some partitions."""
    one = Transaction(name, asked_to_commit=told != "aborted" if asked is None else asked, told=told)
    history.transactions[name] = one
    for place, texts in values.items():
        log = history.log.setdefault(place, Partition())
        for text in texts:
            number = int(text.partition("<")[0].split(":")[1])
            history.sent[text] = Sent(place[0], name[0], number)
            one.values[text] = place[0]
            if there:
                log.records.append((log.end, None, text))
                log.end += 1


Plant = Callable[[History], None]
PLANTED: list[tuple[Kind, str, Plant]] = []


def plants(kind: Kind, where: str) -> Callable[[Plant], Plant]:
    """Note a way to break a history: the kind of fault that is found, and a word of what is said of it."""

    def note(plant: Plant) -> Plant:
        PLANTED.append((kind, where, plant))
        return plant

    return note


# --- producers ---------------------------------------------------------------------------------------------


@plants(Kind.LOST, "p:4 at in[0]@3")
def the_newest_record_is_gone(history: History) -> None:
    history.log[IN].records.pop()
    history.log[IN].end = 3
    history.stretches[1].reads.pop()


@plants(Kind.LOST, "p:1 at gone[0]@9")
def a_whole_partition_is_gone(history: History) -> None:
    history.acked.append(Acked(("gone", 0), 9, "p:1"))


@plants(Kind.LOST, "o:3 at old[0]@2")
def a_record_above_the_start_of_a_topic_that_expires_is_gone(history: History) -> None:
    history.log[OLD] = Partition(2, 3, [])


@plants(Kind.LOST, "n:3 at new[0]@2")
def the_newest_record_of_a_key_is_gone(history: History) -> None:
    history.log[NEW].records = [(1, "k", "n:2")]


@plants(Kind.LOST, "n:2 at new[0]@1")
def a_record_whose_key_has_nothing_newer_was_compacted_away(history: History) -> None:
    history.acked[8] = Acked(NEW, 1, "n:2", "another key")


@plants(Kind.LOST, "q:2 at quick[0]@1")
def a_record_of_a_plain_producer_is_gone(history: History) -> None:
    history.log[QUICK].records[1] = (1, None, "q:1")
    history.log[QUICK].records.pop(1)


@plants(Kind.MOVED, "p:1 at in[0]@0, where p:2")
def two_records_have_changed_places(history: History) -> None:
    history.log[IN].records[:2] = [(0, None, "p:2"), (1, None, "p:1")]


@plants(Kind.OFFSET_TWICE, "p:9 at in[0]@0, where p:1")
def an_offset_was_given_twice(history: History) -> None:
    history.acked.append(Acked(IN, 0, "p:9"))


@plants(Kind.DUPLICATED, "p:4 at in[0]@4, and in[0]@3")
def a_record_is_there_twice(history: History) -> None:
    history.log[IN].records.append((4, None, "p:4"))
    history.log[IN].end = 5


@plants(Kind.DUPLICATED, "t:5 at a[0]@3, and a[0]@2")
def an_intent_was_rolled_forward_twice(history: History) -> None:
    history.log[A].records.append((3, None, "t:5"))
    history.log[A].end = 4


@plants(Kind.INVENTED, "x at in[0]@4")
def a_record_is_there_that_nobody_sent(history: History) -> None:
    history.log[IN].records.append((4, None, "x"))
    history.log[IN].end = 5


@plants(Kind.INVENTED, "o:3 at in[0]@4")
def a_record_is_in_another_topic(history: History) -> None:
    history.log[IN].records.append((4, None, "o:3"))
    history.log[IN].end = 5


@plants(Kind.INVENTED, "<a/0/3 at even[0]@2")
def a_copy_is_there_of_what_is_not(history: History) -> None:
    history.log[EVEN].records.append((2, None, "<a/0/3"))
    history.log[EVEN].end = 3


@plants(Kind.INVENTED, "<in/0/3 at even[0]@2")
def a_copy_is_there_of_another_topic(history: History) -> None:
    history.log[EVEN].records.append((2, None, "<in/0/3"))
    history.log[EVEN].end = 3


@plants(Kind.REORDERED, "p:2 of p at in[0]@2")
def a_repeat_overtook(history: History) -> None:
    history.log[IN].records[1:3] = [(1, None, "p:3"), (2, None, "p:2")]


# --- the log -----------------------------------------------------------------------------------------------


@plants(Kind.HOLE, "in[0]@1 to 1")
def a_record_in_the_middle_is_gone(history: History) -> None:
    del history.log[IN].records[1]


@plants(Kind.HOLE, "in[0]@4 to 4")
def the_end_is_past_the_last_record(history: History) -> None:
    history.log[IN].end = 5


@plants(Kind.HOLE, "in[0]@0 to 0")
def the_first_record_is_not_the_start(history: History) -> None:
    del history.log[IN].records[0]


@plants(Kind.DISORDER, "in[0]@2 follows 2")
def an_offset_is_read_twice(history: History) -> None:
    history.log[IN].records.insert(3, (2, None, "p:3"))


@plants(Kind.DISORDER, "new[0]@1 follows 2")
def offsets_of_a_compacted_topic_fall(history: History) -> None:
    history.log[NEW].records.append((1, "k", "n:2"))


@plants(Kind.OUTSIDE, "old[0]@1 of [2, 3)")
def a_record_below_the_start_is_read(history: History) -> None:
    history.log[OLD].records.insert(0, (1, None, "o:2"))


@plants(Kind.START_FELL, "from 2 to 1")
def a_start_falls(history: History) -> None:
    history.looks.append(Look("w", {OLD: (1, 3)}))


@plants(Kind.START_FELL, "from 3 to 2")
def the_start_at_the_end_is_below_what_was_seen(history: History) -> None:
    history.looks.append(Look("w", {OLD: (3, 3)}))


@plants(Kind.END_FELL, "from 4 to 3")
def an_end_falls(history: History) -> None:
    history.looks.append(Look("w", {IN: (0, 3)}))


@plants(Kind.COMMIT_FELL, "from 1 to 0")
def a_committed_offset_falls(history: History) -> None:
    history.looks.append(Look("w", {IN: (0, 4)}, {(GROUP, IN): 0}))


@plants(Kind.PAST_THE_END, "g at in[0]@9, which ends at 4")
def a_look_shows_a_commit_past_the_end(history: History) -> None:
    history.looks.append(Look("u", {IN: (0, 4)}, {(GROUP, IN): 9}))


@plants(Kind.PAST_THE_END, "r at a[0]@4, which ends at 3")
def the_last_commit_is_past_the_end(history: History) -> None:
    history.committed["r", A] = 4


# --- readers -----------------------------------------------------------------------------------------------


@plants(Kind.SKIPPED, "c.0: in[0]@2 after 0")
def a_reader_skips(history: History) -> None:
    del history.stretches[0].reads[1]
    history.stretches[1].reads.insert(0, (1, "p:2"))


@plants(Kind.SKIPPED, "r.0: new[0]@3 after 0")
def a_reader_skips_what_compaction_left(history: History) -> None:
    produced(history, NEW, 3, "n:4", key="another")
    history.stretches[2].reads[1] = (3, "n:4")


@plants(Kind.WENT_BACK, "c.0: in[0]@1 after 2")
def a_reader_goes_back(history: History) -> None:
    history.stretches[0].reads.append((1, "p:2"))


@plants(Kind.WENT_BACK, "c.1: in[0]@3 after 3")
def a_reader_gets_a_record_twice(history: History) -> None:
    history.stretches[1].reads.append((3, "p:4"))


@plants(Kind.CHANGED, "c.1: in[0]@3 was p:9, and is p:4")
def a_reader_saw_another_record(history: History) -> None:
    history.stretches[1].reads[1] = (3, "p:9")


@plants(Kind.CHANGED, "c.1: in[0]@4 was p:5, and is not there")
def a_reader_saw_a_record_that_is_gone(history: History) -> None:
    history.stretches[1].reads.append((4, "p:5"))


@plants(Kind.UNASSIGNED, "r.1: in[0]@0")
def a_reader_reads_what_is_not_its_own(history: History) -> None:
    history.unassigned.append(("r.1", IN, 0))


@plants(Kind.UNREAD, "g: p:1 at in[0]@0, committed is 2")
def nobody_read_what_a_group_committed(history: History) -> None:
    del history.stretches[0].reads[0]


# --- transactions ------------------------------------------------------------------------------------------


@plants(Kind.ABORTED_SEEN, "t#2: t:4")
def an_aborted_record_is_in_the_log(history: History) -> None:
    history.log[A].records.append((3, None, "t:4"))
    history.log[A].end = 4


@plants(Kind.ABORTED_SEEN, "t#2: t:4")
def a_reader_saw_an_aborted_record(history: History) -> None:
    history.stretches[3].reads.append((3, "t:4"))


@plants(Kind.UNFINISHED_SEEN, "t#4: t:7")
def a_record_is_seen_whose_commit_nobody_asked_for(history: History) -> None:
    history.log[B].records.append((2, None, "t:7"))
    history.log[B].end = 3


@plants(Kind.TORN, "t#1: 2 of 3 records are there")
def a_committed_transaction_lacks_a_topic(history: History) -> None:
    history.log[B] = Partition(0, 1, [(0, None, "t:6")])


@plants(Kind.TORN, "t#3: 1 of 2 records are there")
def a_transaction_without_an_answer_is_there_in_part(history: History) -> None:
    history.log[B] = Partition(0, 1, [(0, None, "t:3")])


@plants(Kind.TORN, "t#3: 0 of 2 records are there")
def a_reader_saw_a_transaction_that_is_not_there(history: History) -> None:
    history.log[B] = Partition(0, 1, [(0, None, "t:3")])
    history.log[A].records.pop()
    history.log[A].end = 2


@plants(Kind.TRANSACTION_LOST, "t#1")
def a_committed_transaction_is_gone(history: History) -> None:
    history.log[A] = Partition(0, 1, [(0, None, "t:5")])
    history.log[B] = Partition(0, 1, [(0, None, "t:6")])
    history.stretches[3].reads = [(0, "t:5")]
    history.committed["r", A] = 1


# --- copies ------------------------------------------------------------------------------------------------


@plants(Kind.COPIED_TWICE, "in[0]@1 to out[0]@1 and to out[0]@2")
def a_record_was_copied_by_two(history: History) -> None:
    transaction(history, "d#1", "committed", {OUT: ["d:1<in/0/1"]})


@plants(Kind.NOT_COPIED, "in[0]@2, committed is 3")
def offsets_are_committed_without_the_copies(history: History) -> None:
    history.committed[GROUP, IN] = 3


@plants(Kind.NOT_COPIED, "a[0]@1, committed is 3")
def a_copy_of_everything_lacks_some(history: History) -> None:
    history.log[ODD] = Partition()


@plants(Kind.COPIED_TWICE, "a[0]@2 to even[0]@1 and to odd[0]@1")
def a_batch_was_routed_otherwise_the_second_time(history: History) -> None:
    history.log[ODD] = Partition(0, 2, [(0, None, "<a/0/1"), (1, None, "<a/0/2")])


@plants(Kind.COPIED_AHEAD, "in[0]@1, committed is 1")
def copies_are_there_without_their_offsets(history: History) -> None:
    history.committed[GROUP, IN] = 1
