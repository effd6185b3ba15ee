"""`tidelog broker start` as real processes: ready lines, signals, errors, several brokers of one machine."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from support.broker_processes import api_versions, broker_command, children, closed, connect, runs
from support.certificates import Authority
from support.cli_calls import answer, done, refused
from support.waiting import eventually

from tidelog.cli.broker.pinning import cores_for
from tidelog.log.lake import Lake

FREE = ("--listener", "127.0.0.1:0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_makes_its_lake_answers_and_ends_by_a_signal(tmp_path, number):
    with broker_command(tmp_path / "lake", *FREE, "--id", "7", "--rack", "a", start=subprocess.Popen) as command:
        ready = command.ready()
        assert (ready["id"], ready["lake"]) == (7, f"file://{tmp_path}/lake")
        with connect(ready["listener"]) as client:
            assert api_versions(client) > 0
            (listed,) = answer("broker", "list", "--lake", str(tmp_path / "lake"))
            at = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": int(ready["listener"].rpartition(":")[2])}
            assert (listed["id"], listed["state"], listed["rack"], listed["controller"]) == (7, "running", "a", True)
            assert listed["listeners"] == [at]
            assert done("broker", "list", "--lake", str(tmp_path / "lake")).stdout == "7\n"
            described = answer("broker", "describe", "7", "--lake", str(tmp_path / "lake"))
            assert described["brokers"] == [listed]
            assert described["controller"] == 7
            assert "No broker of this lake has the id 8" in refused(
                1, "broker", "describe", "8", "--lake", str(tmp_path / "lake")
            )
            Lake(tmp_path / "lake", create=False).require_lake()
            assert command.stop(number) == 0
            assert closed(client)
        (gone,) = answer("broker", "list", "--lake", str(tmp_path / "lake"))
        assert (gone["state"], gone["controller"]) == ("gone", False)
    assert any("broker=7 Broker started: listener=127.0.0.1:" in line and "rack=a" in line for line in command.log)
    assert any("broker=7 Record batches are read in " in line for line in command.log)
    assert f"broker=7 Broker stops: {number.name}; draining 1 connections" in "\n".join(command.log)
    assert command.log[-1].endswith("broker=7 Broker stopped")


def test_a_broker_that_was_killed_is_shown_as_silent(tmp_path):
    lake = ("--lake", str(tmp_path))
    with broker_command(tmp_path, *FREE, "--id", "7") as command:
        listener = command.ready()["listener"]
        (running,) = answer("broker", "list", *lake)
        assert (running["state"], running["unreachable"]) == ("running", None)
        command.stop(signal.SIGKILL)
    (silent,) = answer("broker", "list", *lake)
    assert not silent["controller"]
    assert silent["state"] == "silent", "no broker is left that could note its death"
    assert listener in silent["unreachable"]
    assert done("broker", "list", *lake).stdout == ""
    described = done("broker", "describe", "7", *lake).stdout
    assert "brokers that serve: 0" in described
    assert f"Broker 7 is said to run, and takes no connection from here: {listener}" in described


def test_ids_of_processes_count_up_as_their_ports_do_and_lines_come_in_that_order(tmp_path):
    with broker_command(tmp_path, *FREE, "--processes", "3") as command:
        assert [command.ready()["id"] for _ in range(3)] == [1, 2, 3]


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(1, "--lake", str(tmp_path), "broker", "start", "--listener", f"127.0.0.1:{port}")
    assert f"can't listen at 127.0.0.1:{port}: another process has port {port}" in said


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        ("192.0.2.1:9092", "this machine has no interface of that address"),
        ("no.such.machine.invalid:9092", "no machine has that name"),
        ("localhost", "is no listener: write HOST:PORT"),
        ("localhost:70000", "is no listener: write HOST:PORT"),
        ("::1:9092", "is no listener: write HOST:PORT"),
        ("SASL_SSL://localhost:9092", "--listener is for PLAINTEXT only"),
    ],
)
def test_a_listener_that_can_not_be_had(tmp_path, listener, said):
    assert said in refused(1, "--lake", str(tmp_path), "broker", "start", "--listener", listener)


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("tidelog.log.base.extras.find_spec", lambda name: None if name == "kio" else name)
    said = refused(1, "--lake", str(tmp_path), "broker", "start")
    assert "kio is not installed" in said
    assert "pip install 'tidelog[broker]'" in said


def test_a_lake_of_another_format(tmp_path):
    Lake(tmp_path).ensure_lake()
    file = tmp_path / "__lake.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 99}))
    assert "format 99" in refused(1, "--lake", str(tmp_path), "broker", "start", *FREE)


def test_without_a_lake():
    assert "No lake is given" in refused(2, "broker", "start", *FREE)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TIDELOG_BROKER_MAX_CONNECTION", "5", "Do you mean TIDELOG_BROKER_MAX_CONNECTIONS?"),
        ("TIDELOG_BROKER_MAX_CONNECTIONS", "many", "max.connections is a whole number from 1 to 2147483647"),
        ("TIDELOG_BROKER_SOCKET_REQUEST_MAX_BYTES", "0", "a whole number of bytes from 1024 to 2147483647"),
    ],
)
def test_settings_of_the_environment_that_are_wrong(tmp_path, monkeypatch, variable, value, said):
    monkeypatch.setenv(variable, value)
    assert said in refused(2, "--lake", str(tmp_path), "broker", "start", *FREE)


def test_settings_of_the_environment_count(tmp_path):
    with broker_command(tmp_path, *FREE, env={"TIDELOG_BROKER_MAX_CONNECTIONS": "1"}) as command:
        listener = command.ready()["listener"]
        with connect(listener) as first, connect(listener) as second:
            assert closed(second)
            assert api_versions(first) > 0


def test_processes_are_started_again_when_they_die_and_stopped_together(tmp_path):
    with broker_command(tmp_path, *FREE, "--id", "4", "--processes", "2") as command:
        ready = sorted((command.ready() for _ in range(2)), key=lambda line: line["id"])
        assert [line["id"] for line in ready] == [4, 5]
        os.kill(_process_at(ready[1]["listener"]), signal.SIGKILL)
        assert command.ready() == ready[1], "it has its id and its port again"
        for line in ready:
            with connect(line["listener"]) as client:
                assert api_versions(client) > 0
        assert command.stop() == 0
    assert any("Broker died: id=5 exit=-9; it is started again in 0.5 s" in line for line in command.log)
    for line in ready:
        with pytest.raises(ConnectionRefusedError):
            connect(line["listener"])


@pytest.mark.skipif(None in cores_for(2), reason="there are no two cores of the process's own")
@pytest.mark.parametrize("pins", [True, False])
def test_each_process_stays_on_a_core_of_its_own_unless_told_otherwise(tmp_path, pins):
    with broker_command(tmp_path, *FREE, "--processes", "2", *([] if pins else ["--no-pin"])) as command:
        processes = [_process_at(command.ready()["listener"]) for _ in range(2)]
        cores = [os.sched_getaffinity(process) for process in processes]
        assert [len(one) for one in cores] == ([1, 1] if pins else [len(os.sched_getaffinity(0))] * 2)
        assert cores[0].isdisjoint(cores[1]) is pins


def test_processes_that_can_not_start_end_the_command(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with broker_command(tmp_path, "--listener", f"127.0.0.1:{port}", "--processes", "2") as command:
            assert command.ended() == 1
    assert f"can't listen at 127.0.0.1:{port}" in "\n".join(command.log)


def test_processes_end_when_the_one_that_started_them_is_killed(tmp_path):
    with broker_command(tmp_path, *FREE, "--id", "1", "--processes", "2", "--maintain") as command:
        for _ in range(2):
            command.ready()
        beside = children(command.process.pid)
        forked = [pid for process in beside for pid in children(process)]
        assert len(forked) == 3, "two brokers, and what maintains the lake"
        command.process.kill()
        command.process.wait()
        for process in (*beside, *forked):
            eventually(lambda at=process: not runs(at), f"process {process} ends")


def test_processes_outlive_what_they_were_forked_from_as_little(tmp_path):
    with broker_command(tmp_path, *FREE, "--id", "1", "--processes", "2") as command:
        ready = sorted((command.ready() for _ in range(2)), key=lambda line: line["id"])
        (forking,) = [process for process in children(command.process.pid) if children(process)]
        assert len(os.listdir(f"/proc/{forking}/task")) == 1, "a fork would lack its other threads"
        forked = children(forking)
        os.kill(forking, signal.SIGKILL)
        for process in forked:
            eventually(lambda at=process: not runs(at), f"process {process} ends")
        again = sorted((command.ready() for _ in range(2)), key=lambda line: line["id"])
        assert again == ready, "others have their ids and their ports"
        assert command.stop() == 0


def _process_at(listener):
    """The process that listens there."""
    wanted = f"{int(listener.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [line[9] for line in lines if line[1].endswith(f":{wanted}") and line[3] == "0A"]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(file) == f"socket:[{inode}]" for file in (folder / "fd").iterdir()):
                return int(folder.name)
        except OSError:
            continue
    raise AssertionError(f"no process listens at {listener}")


# --- configuration files -----------------------------------------------------------------------------------


def certified(folder, **issued):
    """A folder's authority, and a configuration with a listener of TLS and one without, on free ports."""
    authority = Authority(folder)
    keystore = authority.issue("broker.pem", **issued)
    path = folder / "broker.properties"
    path.write_text(
        f"listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0\nssl.keystore.location={keystore}\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:SSL\nbroker.id=4\nbroker.rack=b\n"
        f"ssl.key.password={issued.get('password', '')}\n"
    )
    return authority, path


def brokers_by(address, **client):
    """{id: address} of the brokers, as a client of a listener gets to see them."""
    found = AdminClient({"bootstrap.servers": address, **client}).list_topics(timeout=60).brokers
    return {one.id: f"{one.host}:{one.port}" for one in found.values()}


@pytest.mark.parametrize("processes", [1, 2])
def test_each_listener_of_a_file_has_its_protocol_and_its_addresses(tmp_path, processes):
    authority, path = certified(tmp_path, password="s3cret")
    tls = {"security.protocol": "ssl", "ssl.ca.location": str(authority.path)}
    with broker_command(tmp_path / "lake", "--config", str(path), "--processes", str(processes)) as command:
        at = {(line := command.ready())["id"]: line["listeners"] for _ in range(processes)}
        assert sorted(at) == list(range(4, 4 + processes))
        for listeners in at.values():
            eventually(
                lambda one=listeners: brokers_by(one["INSIDE"]) == {n: found["INSIDE"] for n, found in at.items()},
                "all brokers, by the inner listener",
            )
            assert brokers_by(listeners["OUTSIDE"], **tls) == {n: found["OUTSIDE"] for n, found in at.items()}
        (first, *_) = answer("broker", "list", "--lake", str(tmp_path / "lake"))
        assert (first["rack"], [one["name"] for one in first["listeners"]]) == ("b", ["INSIDE", "OUTSIDE"])
        assert command.stop(signal.SIGTERM) == 0
    assert "s3cret" not in "\n".join(command.log)


@pytest.mark.parametrize(
    ("content", "exit_code", "said"),
    [
        ("max.connection=1", 2, "Do you mean max.connections?"),
        ("listeners=PLAINTEXT://127.0.0.1:0", 2, "and --listener is given, too"),
        ("listener.security.protocol.map=PLAINTEXT:SSL\nssl.keystore.location=none.pem", 1, "none.pem can't be read"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, content, exit_code, said):
    path = tmp_path / "broker.properties"
    path.write_text(content)
    assert said in refused(exit_code, "--lake", str(tmp_path), "broker", "start", *FREE, "--config", str(path))


def test_a_key_that_can_not_be_decrypted_is_no_question_at_the_terminal(tmp_path):
    _, path = certified(tmp_path, password="s3cret")
    path.write_text(path.read_text().replace("s3cret", "wr0ng"))
    said = refused(1, "--lake", str(tmp_path), "broker", "start", "--config", str(path))
    assert "can't be decrypted. Give its password as ssl.key.password." in said
    assert "wr0ng" not in said
