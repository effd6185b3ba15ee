"""Install what a part of the work needs into .venv; `.ci/setup` runs it with the Python of .venv, which may be empty.

`parts.py demo|demo-kafka|demo-replicas|test` installs what is not up to date, side by side where nothing depends on the
other; `parts.py check` looks only for a Java that Spark starts on. What was done is kept as a stamp in .venv for each
step, so that a run that was stopped, by Ctrl-C or a lost network, is gone on with by the next.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV, LOGS = ROOT / ".venv", ROOT / "build/setup"
PYTHON = VENV / "bin/python"
_TELLS_EVERY_S = 10.0
_ENDS_WITHIN_S = 5.0
# What the parts in native code are built from, and how.
_NATIVE = (
    "setup.py", "platform/tidelog/broker/records/native.pyx", "platform/tidelog/broker/records/pages.pxi",
    "platform/tidelog/broker/records/crc32c.h", "platform/tidelog/broker/records/native_lz4.pyx",
    "platform/tidelog/broker/wire/native_produce.pyx",
    "platform/tidelog/log/segments/native_tiny.pyx", "platform/tidelog/log/segments/crc32.h",
    "platform/tidelog/log/storage/native_files.pyx",
)  # fmt: skip
# The modules of tests/support that say what is installed for tests.
_INSTALL = ("axe", "installing", "kafka_clients", "kafka_programs", "tools")

JAVA_ADVICE = (
    "get one and run this again:",
    "Debian, Ubuntu   apt install openjdk-17-jre-headless",
    "macOS            brew install openjdk@17   (and follow what it says about PATH)",
    "anywhere         sdk install java 17-tem   (SDKMAN)",
)
GO_ADVICE = (
    "get it and run this again:",
    "anywhere         https://go.dev/dl   (1.24 or newer)",
    "macOS            brew install go",
)
# Spark's own resolver, in a JVM of Spark's, fetches the jars: so they are where its sessions look for them.
_FETCH_JARS = """
from pyspark.sql import SparkSession
from tidelog.spark import configure, s3a
from tidelog.spark.class_archive import write_archive
{how}
"""
# A JVM that has fetched is as good as any to write the archive of classes with which others start sooner.
_DELTA = _FETCH_JARS.format(how="write_archive() or configure(SparkSession.Builder())")
_S3A = _FETCH_JARS.format(
    how='configure(SparkSession.Builder().config("spark.jars.excludes", ",".join(s3a.EXCLUDED)), s3a.PACKAGES)'
)


class SetupError(Exception):
    """A step failed: what happened, then lines on what to do."""


@dataclass(frozen=True)
class Step:
    """One thing to install. `after`: steps that must be done before. `depends`: what makes it be done again.

    `seconds`: about how long it takes, from the network and not from a cache. `within`: steps that install all of it.
    """

    name: str
    says: str
    seconds: int
    run: Callable[["Step"], None]
    depends: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    @property
    def stamp(self) -> Path:
        """The file that says with what it was done."""
        return VENV / ".setup" / self.name

    @property
    def log(self) -> Path:
        """What the programs that it ran have said."""
        return LOGS / f"{self.name}.log"

    @property
    def wanted(self) -> str:
        """What the stamp says when it is up to date."""
        return hashlib.sha256("\0".join((str(ROOT), *self.depends)).encode()).hexdigest()

    @property
    def is_done(self) -> bool:
        """Whether nothing is to do."""
        stamps = (self.stamp.with_name(name) for name in (self.name, *self.within))
        return any(stamp.exists() and stamp.read_text() == self.wanted for stamp in stamps)

    @property
    def last_words(self) -> list[str]:
        """The last lines of its log."""
        return self.log.read_text(errors="replace").splitlines()[-30:] if self.log.exists() else []


class Programs:
    """The programs that steps run. Each has a process group of its own, so that Ctrl-C reaches only this process,
    which then ends them all and starts no more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = set[subprocess.Popen[bytes]]()
        self.stopped = False

    def run(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str]) -> int:
        """Run a command to its end, its words added to `log`; the exit code. Raises `SetupError` once stopped."""
        with open(log, "ab") as words, self._lock:
            if self.stopped:
                raise SetupError("stopped")
            program = subprocess.Popen(
                [str(word) for word in command],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
            self._running.add(program)
        try:
            return program.wait()
        finally:
            with self._lock:
                self._running.discard(program)

    def stop(self) -> None:
        """End what runs, with all that it has started."""
        with self._lock:
            self.stopped = True
            running = [*self._running]
        for number in (signal.SIGINT, signal.SIGKILL):
            for program in running:
                if program.poll() is None:
                    os.killpg(program.pid, number)
            for program in running:
                with suppress(subprocess.TimeoutExpired):
                    program.wait(_ENDS_WITHIN_S)


PROGRAMS = Programs()


def run(step: Step, command: Sequence[str | Path], **environment: str) -> None:
    """Run a command of a step. Raises `SetupError` with its last words."""
    if PROGRAMS.run(command, step.log, environment):
        kept = step.log.relative_to(ROOT)
        raise SetupError(f"{step.says}: failed; its own words, all of them in {kept}:", *step.last_words)


# --- Python's packages -------------------------------------------------------------------------------------

# What pip's configuration may say, and the variable that gives uv the same; None: uv needs nothing of it.
OF_PIP: Mapping[str, str | None] = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
    "no-cache-dir": "UV_NO_CACHE",
    "config-file": None,
    "cache-dir": None,
    "break-system-packages": None,
    "log": None,
    "resume-retries": None,
    "disable-pip-version-check": None,
    "no-input": None,
    "no-color": None,
    "progress-bar": None,
    "quiet": None,
    "require-virtualenv": None,
    "root-user-action": None,
    "user": None,
    "verbose": None,
    "no-warn-script-location": None,
    "no-python-version-warning": None,
}


def uv_environment(configuration: str) -> dict[str, str] | None:
    """Variables that give uv what `pip config list` says; None where uv has no setting for something in it.

    >>> uv_environment("global.index-url='https://pypi.example.org/simple'")
    {'UV_DEFAULT_INDEX': 'https://pypi.example.org/simple'}
    """
    variables: dict[str, str] = {}
    for line in configuration.splitlines():
        name, found, value = line.partition("=")
        section, _, key = name.strip().rpartition(".")
        if not found or section not in ("global", "install", ":env:", "env"):
            continue
        if key not in OF_PIP:
            return None
        if variable := OF_PIP[key]:
            variables[variable] = " ".join(value.strip().strip("'\"").replace("\\n", " ").split())
    if "UV_FIND_LINKS" in variables:
        variables["UV_FIND_LINKS"] = variables["UV_FIND_LINKS"].replace(" ", ",")
    if "UV_INDEX" in variables:
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip, which takes the best version of all indexes
    return variables


def install(extra: str) -> Callable[[Step], None]:
    """A step that installs tidelog, editable, with an extra: by uv, or by pip where uv can't or fails."""

    def by(step: Step) -> None:
        pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        wanted = ("-e", f".[{extra}]")
        # An installer that was killed may leave a package that only looks whole: then all are installed again.
        begun = step.stamp.with_name("packages.begun")
        again = begun.exists()
        begun.touch()
        asked = subprocess.run([*map(str, pip), "config", "list"], capture_output=True, text=True, check=False)
        variables = uv_environment(asked.stdout) if asked.returncode == 0 else None
        if variables is not None:
            try:
                run(step, [*pip, "install", "--quiet", "uv>=0.9"])
                # What the user has set for uv itself goes before what is set for pip.
                own = {name: value for name, value in variables.items() if name not in os.environ}
                uv = [VENV / "bin/uv", "pip", "install", "--python", PYTHON, *(["--reinstall"] if again else [])]
                # Else uv would not see that the native part has other sources now.
                run(step, [*uv, "--reinstall-package", "tidelog", *wanted], VIRTUAL_ENV=str(VENV), **own)
                begun.unlink()
                return
            except SetupError as error:
                if PROGRAMS.stopped:
                    raise
                with open(step.log, "a") as log:
                    log.write(f"uv failed, so pip installs: {error}\n")
        run(step, [*pip, "install", *(["--force-reinstall"] if again else []), *wanted])
        begun.unlink()

    return by


# --- Java --------------------------------------------------------------------------------------------------


def check_java() -> None:
    """Look for a Java that Spark starts on. Raises `SetupError`."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    try:
        asked = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)
    except OSError:
        raise SetupError(f"no Java: '{java}' is not there; Spark needs Java 17 or newer.", *JAVA_ADVICE) from None
    said = asked.stdout + asked.stderr
    if asked.returncode:
        first = said.partition("\n")[0]
        raise SetupError(
            f"'{java}' does not list its modules, so it is no Java 17 or newer, which Spark needs; it says: {first}",
            *JAVA_ADVICE,
        )
    version = re.search(r"^java\.base@(\d+)", said, re.MULTILINE)
    if version is None or int(version[1]) < 17:
        known = version[1] if version else "of an unknown version"
        raise SetupError(f"'{java}' is Java {known}; Spark needs Java 17 or newer.", *JAVA_ADVICE)
    if not re.search(r"^jdk\.incubator\.vector@", said, re.MULTILINE):
        raise SetupError(
            f"'{java}' lacks the module jdk.incubator.vector: it is a trimmed runtime and Spark does not start on it.",
            *JAVA_ADVICE,
        )


def check_maven(home: Path, delta: str) -> None:
    """Spark's resolver takes an artifact of the local repository for complete as soon as its POM is there."""
    folders = sorted((home / ".m2/repository/io/delta").glob(f"*/{delta}"))
    broken = [folder for folder in folders if any(folder.glob("*.pom")) and not any(folder.glob("*.jar"))]
    if broken:
        raise SetupError(
            "your local Maven repository holds Delta's POMs without their jars, which breaks Spark's resolver.",
            "remove these folders and run this again:",
            *(f"rm -r '{folder}'" for folder in broken),
        )


def fetch_jars(program: str) -> Callable[[Step], None]:
    """A step in which Spark's resolver fetches jars, once for a machine."""

    def by(step: Step) -> None:
        # Spark's scripts find their own place by an unquoted path unless SPARK_HOME names it.
        (spark,) = VENV.glob("lib/python3*/site-packages/pyspark")
        run(step, [PYTHON, "-c", program], SPARK_HOME=str(spark))

    return by


def install_tools(*programs: str) -> Callable[[Step], None]:
    """A step in which these programs install what tests run; where a program is not, its tests skip."""

    def by(step: Step) -> None:
        run(step, [PYTHON, "-m", "support.installing", *programs], PYTHONPATH="tests")

    return by


def minio_step() -> Step:
    """Build the server that the demo of replicas runs four of, at the version that the demo names."""
    nodes = (ROOT / "platform/tidelog/cli/demo/store_nodes.py").read_text(encoding="utf-8")
    package = re.findall(r'^PACKAGE = "([^"]+)"', nodes, re.MULTILINE)[0]

    def build(step: Step) -> None:
        if shutil.which("go") is None:
            raise SetupError("no Go, which builds MinIO's server for the store's nodes.", *GO_ADVICE)
        run(step, ["go", "install", package], GOBIN=str(VENV / "bin"))

    return Step("minio", "MinIO's server, of which four run as the store's nodes", 150, build, (package,))


# --- the steps of a part -----------------------------------------------------------------------------------

# Each part's extra in pyproject.toml, which holds the extras before it, and about how long it takes.
EXTRAS: Mapping[str, tuple[str, int]] = {"demo": ("demo", 60), "demo-kafka": ("demo-kafka", 70), "test": ("dev", 120)}


# The demo's part, and a program in Go beside it.
REPLICAS = "demo-replicas"


def steps_of(part: str) -> list[Step]:
    """What a part needs, in an order in which it could be done one after another. Raises `SetupError`.

    A part has the packages of those before it, so that it counts for them as well.
    """
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(pyproject)["project"]
    packages = str((project["dependencies"], project["optional-dependencies"], project["scripts"], project["version"]))
    # With a compiler that was not there before, the native part is built at last.
    compiler = shutil.which(os.environ.get("CC", "cc")) or ""
    sources = ((ROOT / name).read_text(encoding="utf-8") for name in (*_NATIVE, ".ci/parts.py"))
    python = (packages, sys.version, compiler, *sources)
    if part == REPLICAS:
        return [*steps_of("demo"), minio_step()]
    if part not in EXTRAS:
        raise SetupError(f"'{part}' is no part of the work: give one of {', '.join((*EXTRAS, REPLICAS))}.")
    extra, seconds = EXTRAS[part]
    larger = [*EXTRAS][[*EXTRAS].index(part) + 1 :]
    packages_step = Step(
        f"packages-{part}",
        f"Python's packages for '{part}'",
        seconds,
        install(extra),
        python,
        within=tuple(f"packages-{name}" for name in larger),
    )
    delta = Step("delta", "Delta's jars for Spark", 30, fetch_jars(_DELTA), python, (packages_step.name,))
    if part != "test":
        return [packages_step, delta]
    support = (ROOT / "tests/support" / f"{name}.py" for name in _INSTALL)
    tests = tuple(
        path.read_text(encoding="utf-8") for path in sorted((*(ROOT / "tests/clients").rglob("*.*"), *support))
    )
    return [
        packages_step,
        Step(
            "go-node", "the S3 server, Go's and Node's Kafka clients, axe-core", 120, install_tools("go", "npm"), tests
        ),
        delta,
        # Ivy's folder takes one resolver at a time.
        Step("s3a", "Hadoop's jars for S3", 20, fetch_jars(_S3A), python, (delta.name,)),
        Step("java", "Kafka's programs in Java", 60, install_tools("java", "javac"), tests, (packages_step.name,)),
    ]


@dataclass
class Progress:
    """Tells what is going on: each step as it begins, all that last every ten seconds."""

    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    going: dict[str, tuple[Step, float]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def begin(self, step: Step) -> None:
        self.going[step.name] = (step, self.clock())
        self.tell(f"{step.says} (about {step.seconds} s from the network) ...")

    def end(self, step: Step) -> None:
        _, since = self.going.pop(step.name)
        self.tell(f"{step.says}: done in {self.clock() - since:.0f} s")

    def tell_lasting(self) -> None:
        """Tell how long each step has lasted by now, and what its program has said last."""
        now = self.clock()
        for step, since in list(self.going.values()):
            said = step.last_words[-1:]
            self.tell(f"{step.says}: {now - since:.0f} s{''.join(f'; {line.strip()[:70]}' for line in said)}")

    def keep_telling(self) -> None:
        while not self.over.wait(_TELLS_EVERY_S):
            self.tell_lasting()


def do_all(steps: Sequence[Step], tell: Callable[[str], None]) -> list[SetupError]:
    """Do the steps that are not up to date, each as soon as those before it are; the errors of those that failed."""
    todo = {step.name: step for step in steps if not step.is_done}
    progress, running, failed = Progress(tell), dict[Future[None], Step](), list[SetupError]()
    teller = threading.Thread(target=progress.keep_telling, daemon=True)
    teller.start()
    with ThreadPoolExecutor(max(1, len(todo))) as threads:
        try:
            waiting = dict(todo)
            while waiting or running:
                for step in [step for step in waiting.values() if not todo.keys() & {*step.after}]:
                    progress.begin(waiting.pop(step.name))
                    step.log.parent.mkdir(parents=True, exist_ok=True)
                    step.stamp.parent.mkdir(exist_ok=True)
                    step.log.write_bytes(b"")
                    running[threads.submit(step.run, step)] = step
                if not running:
                    break  # what the rest waits for has failed
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    step = running.pop(future)
                    error = future.exception()
                    if isinstance(error, SetupError):
                        progress.going.pop(step.name)
                        failed.append(error)
                        continue
                    future.result()
                    step.stamp.write_text(step.wanted)
                    del todo[step.name]
                    progress.end(step)
        except BaseException:
            PROGRAMS.stop()
            raise
        finally:
            progress.over.set()
    return failed


def say(words: str) -> None:
    """A line for people."""
    print(f"setup: {words}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Do a part's steps; the exit code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if list(arguments) == ["check"]:
            check_java()
            return 0
        steps = steps_of(arguments[0] if arguments else "test")
        if all(step.is_done for step in steps):
            return 0
        check_java()
        pins = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        check_maven(Path.home(), re.findall(r'"delta-spark==([^"]+)"', pins)[0])
        errors = do_all(steps, say)
    except SetupError as error:
        errors = [error]
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here.")
        return 130
    for error in errors:
        first, *rest = error.args
        print(f"setup: {first}", *(f"       {line}" for line in rest), sep="\n", file=sys.stderr)
    if errors:
        print("setup: run the same command again: it goes on from here.", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
