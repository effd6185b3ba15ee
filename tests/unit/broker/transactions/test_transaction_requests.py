"""Requests of transactions in every version, and the codes of what is refused, without sockets and threads."""

from typing import Any

import pytest
from support.broker_requests import Requests
from support.logs import memory_lake, values
from support.produce_requests import batch, encoded_produce

from tidelog.broker.transactions.coordinator import LOOK_S, QUIET_LOOK_S, TransactionCoordinator
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.lake import Lake
from tidelog.operations.transactions import read_transactions
from tidelog.transactions.transaction_log import TransactionLog
from tidelog.transactions.upkeep import TransactionUpkeep

OLD, NEW = 9, 12  # versions of Produce whose clients add partitions before, and by the batch itself


class Client:
    """A transactional producer whose requests are written by hand. `new`: of KIP-890's second generation."""

    def __init__(self, requests: Requests, name: str = "x", *, new: bool = True) -> None:
        self.requests = requests
        self.name = name
        self.new = new
        self.producer_id = self.epoch = -1

    def init(self, version: int = 5, **more: Any) -> int:
        body = {"transactional_id": self.name, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
        answer = self.requests.ask(ApiKey.INIT_PRODUCER_ID, version, body | more)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def who(self, prefix: str = "") -> dict[str, Any]:
        named = {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}
        return {prefix + key: value for key, value in named.items()}

    def add(self, *partitions: int, version: int = 3, topic: str = "t") -> list[int]:
        topics = [{"name": topic, "partitions": list(partitions)}]
        body = self.who("v3_and_below_") | {"v3_and_below_topics": topics}
        answer = self.requests.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, body)
        (found,) = answer.results_by_topic_v3_and_below
        return [int(one.partition_error_code) for one in found.results_by_partition]

    def produce(self, sequence: int, *texts: bytes, version: int | None = None, partition: int = 0) -> int:
        records = batch(*texts, producer=(self.producer_id, self.epoch, sequence), transactional=True)
        version = version or (NEW if self.new else OLD)
        body = encoded_produce(version, {"t": {partition: records}}, transactional_id=self.name)
        (topic,) = self.requests.ask_encoded(ApiKey.PRODUCE, version, body).responses
        (found,) = topic.partition_responses
        return int(found.error_code)

    def add_offsets(self, group: str = "g", version: int = 3) -> int:
        answer = self.requests.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, self.who() | {"group_id": group})
        return int(answer.error_code)

    def commit_offset(self, offset: int, version: int = 3, topic: str = "t", **more: Any) -> int:
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": topic, "partitions": [partition | {"committed_metadata": "m"}]}]
        body = self.who() | {"group_id": "g", "generation_id": -1, "member_id": "", "topics": topics}
        ((answer,),) = (
            one.partitions for one in self.requests.ask(ApiKey.TXN_OFFSET_COMMIT, version, body | more).topics
        )
        return int(answer.error_code)

    def end(self, *, commit: bool = True, version: int | None = None) -> int:
        version = version if version is not None else 5 if self.new else 3
        answer = self.requests.ask(ApiKey.END_TXN, version, self.who() | {"committed": commit})
        if not answer.error_code and version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)


@pytest.fixture
def lake():
    lake, _, _ = memory_lake()
    lake.create_topic("t", 2)
    lake.topic("t").append(values("first", partition=[0]))
    return lake


@pytest.fixture
def on_disk(tmp_path):
    """A lake by the machine's clock: a coordinator of groups asks it amid a decision."""
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", 2)
        lake.topic("t").append(values("first", partition=[0]))
        yield lake


def coordinator_of(requests):
    owners = [getattr(one, "__self__", None) for one in requests.broker._context.at_close]
    return next(one for one in owners if isinstance(one, TransactionCoordinator))


def texts(lake):
    return [row["value"] for part in lake.topic("t").read(0) for row in part.to_pylist()]


@pytest.mark.parametrize(("new", "version", "code"), [(False, 1, 47), (False, 2, 90), (False, 3, 90), (True, 5, 90)])
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_that_had_its_time_does_not_end_and_its_producer_is_fenced(
    lake, requests, new, version, code, commits
):
    """Though no look of the coordinator's has come upon it yet: on a store that is far they are seconds apart."""
    client = Client(requests, new=new)
    assert client.init(transaction_timeout=2_000) == 0
    for late in (False, True):
        if not new:
            assert client.add(0) == [0]
        assert client.produce(1 if late and not new else 0, b"late" if late else b"in time") == 0
        if new:  # its first batch began it, which the coordinator sees when it looks
            requests.loop.run_until_complete(coordinator_of(requests).look())
        lake.clock.pass_s(2.0 if late else 1.9)
        assert client.end(commit=commits, version=version) == (code if late else 0)
    assert texts(lake) == [b"first", *([b"in time"] if commits else [])]
    assert client.init() == 0


def test_looks_are_rarer_where_there_was_nothing_unfinished_for_a_while(lake, requests):
    coordinator, client = coordinator_of(requests), Client(requests, new=False)

    def pause_s():
        requests.loop.run_until_complete(coordinator.look())
        return coordinator._pause_s()

    assert pause_s() == LOOK_S
    lake.clock.pass_s(11)
    assert pause_s() == QUIET_LOOK_S
    assert (client.init(), client.add(0), client.produce(0, b"open")) == (0, [0], 0)
    assert pause_s() == LOOK_S
    lake.clock.pass_s(11)
    assert pause_s() == LOOK_S, "it is still open"
    assert client.end(commit=True) == 0
    assert pause_s() == LOOK_S
    lake.clock.pass_s(11)
    requests.loop.run_until_complete(coordinator._mark())
    assert pause_s() == LOOK_S, "the entry that marks it"
    lake.clock.pass_s(11)
    assert pause_s() == QUIET_LOOK_S


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_of_the_first_generation(lake, requests, version, commits):
    client = Client(requests, new=False)
    assert client.init(min(version, 2)) == 0
    for number in range(2):
        assert client.add(0, 1, version=version) == [0, 0]
        assert client.produce(number, b"%d" % number) == 0
        assert texts(lake)[1:] == [b"%d" % n for n in range(number)] * commits
        assert client.end(commit=commits, version=version) == 0
        assert client.end(commit=commits, version=version) == 0, "the same again"
    assert texts(lake) == [b"first", *([b"0", b"1"] if commits else [])]
    assert client.epoch == 0


def test_a_transaction_of_the_second_generation(lake, requests):
    client = Client(requests)
    assert client.init() == 0
    assert [client.produce(0, b"a"), client.produce(1, b"b"), client.end()] == [0, 0, 0]
    assert [client.produce(0, b"c"), client.end(commit=False)] == [0, 0]
    assert [client.produce(0, b"d"), client.end()] == [0, 0]
    assert texts(lake) == [b"first", b"a", b"b", b"d"]
    assert client.epoch == 3


@pytest.mark.parametrize(("version", "code"), [(OLD, 48), (11, 120)])
def test_a_batch_whose_partition_was_not_added_is_refused(lake, requests, version, code):
    client = Client(requests, new=False)
    client.init()
    assert client.produce(0, b"a", version=version) == code
    assert client.add(0) == [0]
    assert client.produce(0, b"a", version=version) == 0


@pytest.mark.parametrize(
    ("key", "versions"),
    [
        (ApiKey.ADD_PARTITIONS_TO_TXN, {0: 47, 1: 47, 2: 90, 3: 90}),
        (ApiKey.ADD_OFFSETS_TO_TXN, {0: 47, 1: 47, 2: 90, 4: 90}),
        (ApiKey.END_TXN, {0: 47, 1: 47, 2: 90, 5: 90}),
        (ApiKey.TXN_OFFSET_COMMIT, {0: 47, 3: 47, 5: 47}),
        (ApiKey.PRODUCE, {OLD: 47, NEW: 47}),
    ],
)
def test_a_producer_that_was_replaced_is_refused_as_each_version_knows_it(lake, requests, key, versions):
    client, other = Client(requests), Client(requests)
    client.init()
    other.init()
    ask = {
        ApiKey.ADD_PARTITIONS_TO_TXN: lambda version: client.add(0, version=version)[0],
        ApiKey.ADD_OFFSETS_TO_TXN: lambda version: client.add_offsets(version=version),
        ApiKey.END_TXN: lambda version: client.end(version=version),
        ApiKey.TXN_OFFSET_COMMIT: lambda version: client.commit_offset(1, version=version),
        ApiKey.PRODUCE: lambda version: client.produce(0, b"a", version=version),
    }[key]
    assert {version: ask(version) for version in versions} == versions
    client.producer_id = 99
    assert {version: ask(version) for version in versions} == dict.fromkeys(versions, 49)


def test_a_producer_goes_on_in_its_next_epoch(lake, requests):
    client = Client(requests)
    client.init()
    expected = {"producer_id": client.producer_id, "producer_epoch": client.epoch}
    assert [client.init(5, **expected), client.epoch] == [0, 1]
    assert [client.init(5, **expected), client.epoch] == [0, 1], "the same again"
    Client(requests).init()
    assert [client.init(3, **expected), client.init(4, **expected)] == [47, 90]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"transactional_id": ""}, 42),
        ({"transaction_timeout": 0}, 50),
        ({"transaction_timeout": 900_001}, 50),
        ({"producer_id": 5}, 42),
        ({"enable2_pc": True}, 53),
        ({"transactional_id": None}, 0),
    ],
)
def test_what_init_producer_id_refuses(requests, more, code):
    assert Client(requests).init(6, **more) == code


def test_an_unknown_partition_is_refused_and_the_others_are_not_attempted(lake, requests):
    client = Client(requests, new=False)
    client.init()
    assert client.add(0, 7) == [55, 3]
    assert client.add(0, topic="none") == [3]
    assert TransactionLog(lake).open("x") is None


def test_partitions_are_added_and_verified_for_several_transactions_at_once(lake, requests):
    clients = [Client(requests, name) for name in "xy"]
    for client in clients:
        client.init()
    clients[0].add(0)
    transactions = [
        client.who() | {"verify_only": client is clients[0], "topics": [{"name": "t", "partitions": [partition]}]}
        for client, partition in ((clients[0], 0), (clients[0], 1), (clients[1], 1))
    ]
    answer = requests.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 5, {"transactions": transactions})
    codes = [one.topic_results[0].results_by_partition[0].partition_error_code for one in answer.results_by_transaction]
    assert codes == [0, 48, 0]
    assert TransactionLog(lake).open("y").partitions == [("t", 1)]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commits", [True, False])
def test_offsets_wait_for_the_end(on_disk, version, commits):
    with Requests(on_disk) as requests:
        _offsets_wait(on_disk, requests, version, commits)


def _offsets_wait(lake, requests, version, commits):
    client = Client(requests)
    client.init()
    if version < 5:
        assert client.commit_offset(1, version) == 48, "the group was not added"
        assert client.add_offsets() == 0
    assert client.commit_offset(1, version) == 0
    assert dict(GroupLog(lake).offsets("g")) == {}
    assert client.end(commit=commits) == 0
    offsets = {place: one.offset for place, one in GroupLog(lake).stable_offsets("g").items()}
    assert offsets == ({("t", 0): 1} if commits else {})


def test_offsets_that_can_not_be_committed_are_refused(lake, requests):
    client = Client(requests)
    client.init()
    assert client.commit_offset(1, 5, topic="none") == 3
    assert client.commit_offset(1, 5, member_id="gone", generation_id=3) == 22
    assert client.end(commit=False) == 0


def described(requests, name="x"):
    answer = requests.reply(ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [name]})
    (found,) = answer["transaction_states"]
    return found


def test_transactions_are_described(lake, requests):
    client = Client(requests)
    assert described(requests)["error_code"] == 105
    client.init()
    states = [described(requests)["transaction_state"]]
    client.produce(0, b"a", partition=1)
    found = described(requests)
    states.append(found["transaction_state"])
    assert found["topics"] == [{"topic": "t", "partitions": [1]}]
    assert (found["producer_id"], found["producer_epoch"]) == (client.producer_id, client.epoch)
    assert found["transaction_start_time"] == lake.clock.now_ms()
    client.end()
    states.append(described(requests)["transaction_state"])
    client.produce(0, b"a")
    client.end(commit=False)
    states.append(described(requests)["transaction_state"])
    assert states == ["Empty", "Ongoing", "CompleteCommit", "CompleteAbort"]


def test_the_command_line_shows_an_open_transaction(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a", partition=1)
    (shown,) = read_transactions(lake)
    assert (shown.state, shown.start_ms, shown.partitions) == ("Ongoing", lake.clock.now_ms(), (("t", 1),))
    client.end()
    (shown,) = read_transactions(lake)
    assert shown.state != "Ongoing"


def listed(requests, version=2, **filters):
    wanted = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, "transactional_id_pattern": None}
    return requests.ask(ApiKey.LIST_TRANSACTIONS, version, wanted | filters)


def test_transactions_are_listed(lake, requests):
    clients = {name: Client(requests, name) for name in ("ab", "abc", "b")}
    for client in clients.values():
        client.init()
    clients["ab"].produce(0, b"a")

    def names(**filters):
        return [one.transactional_id for one in listed(requests, **filters).transaction_states]

    assert names() == ["ab", "abc", "b"]
    assert names(state_filters=["Ongoing"]) == ["ab"]
    assert names(state_filters=["Empty", "Dead"]) == ["abc", "b"]
    assert names(producer_id_filters=[clients["b"].producer_id]) == ["b"]
    assert names(transactional_id_pattern="a.*") == ["ab", "abc"]
    assert names(transactional_id_pattern="b") == ["b"], "all of a name matches"
    assert names(duration_filter=1_000) == ["abc", "b"]
    assert listed(requests, transactional_id_pattern="(").error_code == 128
    assert listed(requests, state_filters=["Nothing"]).unknown_state_filters == ("Nothing",)


def test_producers_of_a_partition_are_described(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a", b"b")
    body = {"topics": [{"name": "t", "partition_indexes": [0, 1, 7]}, {"name": "none", "partition_indexes": [0]}]}
    topics = requests.ask(ApiKey.DESCRIBE_PRODUCERS, 0, body).topics
    assert [[p.error_code for p in topic.partitions] for topic in topics] == [[0, 0, 3], [3]]
    (found,) = topics[0].partitions[0].active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (client.producer_id, 0, 1)
    assert found.current_txn_start_offset == 1, "the last stable offset"
    assert topics[0].partitions[1].active_producers == ()


def started(requests, partition=0):
    """{producer id: where its transaction starts in the partition}."""
    body = {"topics": [{"name": "t", "partition_indexes": [partition]}]}
    ((one,),) = (topic.partitions for topic in requests.ask(ApiKey.DESCRIBE_PRODUCERS, 0, body).topics)
    return {found.producer_id: found.current_txn_start_offset for found in one.active_producers}


def test_open_transactions_start_one_after_another_as_if_they_were_committed_so(lake, requests):
    clients = [Client(requests, name) for name in "xyz"]
    for number, client in enumerate(clients):
        lake.clock.sleep(1.0)
        client.init()
        assert client.produce(0, *[b"a"] * (number + 1)) == 0
    first, second, third = (client.producer_id for client in clients)
    assert started(requests) == {first: 1, second: 2, third: 4}
    assert clients[0].end(commit=False) == 0
    assert started(requests) == {second: 1, third: 3}
    assert clients[1].end() == 0
    assert started(requests) == {third: 3}


def test_an_added_partition_without_records_starts_nowhere(lake, requests):
    client = Client(requests, new=False)
    client.init(2)
    client.add(0)
    client.produce(0, b"a")
    assert client.end() == 0
    client.add(0)
    assert started(requests) == {client.producer_id: -1}


# --- abort markers -----------------------------------------------------------------------------------------


def marked(requests, client, *partitions, version=1, topic="t", epoch=None, commit=False):
    """The error codes of an abort marker."""
    marker = {
        "producer_id": client.producer_id,
        "producer_epoch": client.epoch if epoch is None else epoch,
        "transaction_result": commit,
        "topics": [{"name": topic, "partition_indexes": list(partitions)}],
        "coordinator_epoch": 0,
        "transaction_version": 0,
    }
    (found,) = requests.ask(ApiKey.WRITE_TXN_MARKERS, version, {"markers": [marker]}).markers
    assert found.producer_id == client.producer_id
    ((name, codes),) = ((one.name, [int(p.error_code) for p in one.partitions]) for one in found.topics)
    assert name == topic
    return codes


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.WRITE_TXN_MARKERS].first, 3))
@pytest.mark.parametrize("new", [True, False], ids=["second", "first"])
def test_a_marker_aborts_a_transaction_and_fences_its_producer(lake, requests, version, new):
    client = Client(requests, new=new)
    client.init(2)
    if not new:
        client.add(0, 1)
    assert [client.produce(0, b"a"), client.produce(0, b"b", partition=1)] == [0, 0]
    (part,) = TransactionLog(lake).open("x").parts
    assert marked(requests, client, 0, version=version) == [0]
    assert client.produce(1, b"c") in (47, 90), "its producer hears of it, and commits no half of its records"
    assert client.end() in (47, 90)
    assert texts(lake) == [b"first"]
    for segment in part.segments:
        with pytest.raises(ObjectNotFoundError):
            lake.storage.head(f"t/{segment.path}")
    assert marked(requests, client, 0, version=version) == [47], "it has ended"
    assert client.init() == 0
    assert [client.produce(0, b"d") if new else client.add(0)[0], *([] if new else [client.produce(0, b"d")])][-1] == 0
    assert client.end() == 0
    assert texts(lake) == [b"first", b"d"]


def test_a_marker_for_partitions_that_are_not_there(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a")
    assert marked(requests, client, 7, -1) == [3, 3]
    assert marked(requests, client, 0, topic="none") == [3]
    assert marked(requests, client, 1) == [0], "nothing is open there"
    assert client.end() == 0
    assert texts(lake) == [b"first", b"a"]


def test_a_marker_commits_nothing(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a")
    assert marked(requests, client, 0, commit=True) == [42]
    assert texts(lake) == [b"first"]
    assert client.end() == 0


def test_a_purge_leaves_what_open_transactions_have_staged(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a")
    needed = TransactionUpkeep(lake, None).needed_files("t", lake.topic("t").state().version + 1)  # type: ignore[arg-type]
    (part,) = TransactionLog(lake).open("x").parts
    assert set(needed) == {segment.path for segment in part.segments}
    assert client.end() == 0, "the floor came after the part"
    assert texts(lake) == [b"first", b"a"]


def test_an_abort_deletes_what_was_staged(lake, requests):
    client = Client(requests)
    client.init()
    client.produce(0, b"a")
    (part,) = TransactionLog(lake).open("x").parts
    paths = [f"t/{segment.path}" for segment in part.segments]
    assert all(lake.storage.head(path).size for path in paths)
    client.end(commit=False)
    left = {one.path for one in lake.storage.list_after("t/partition=0")}
    assert not left & set(paths)


def test_kips_848_and_890_and_1071_are_offered(requests):
    for version in (3, OFFERED[ApiKey.API_VERSIONS].last):
        answer = requests.ask(
            ApiKey.API_VERSIONS, version, {"client_software_name": "a", "client_software_version": "1"}
        )
        finalized = {one.name: one.max_version_level for one in answer.finalized_features}
        assert finalized == {"group.version": 1, "streams.version": 1, "transaction.version": 2}
        assert answer.finalized_features_epoch >= 0
        supported = [(one.name, one.min_version, one.max_version) for one in answer.supported_features]
        every = [("group.version", 0, 1), ("streams.version", 0, 1), ("transaction.version", 0, 2)]
        assert supported == (every if version >= 4 else []), "older ones refuse level 0"
