"""The steps of the images' recipe, run in an empty root of Debian; then what they made, as a cluster would start it.

It needs root, mmdebstrap and bubblewrap (apt install mmdebstrap bubblewrap). A container here is bubblewrap's: another
user, a root that can't be written, an empty /tmp, and no capabilities.
"""

import gzip
import json
import os
import shutil
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat.suite import FAILED, PASSED, Outcome, ToolError, built, free_ports
from support.image_recipe import RECIPE, ROOT, Stage, Step, environment_of, stages, steps_of

SUITE = "images"
# Megabytes of 10^6 bytes that a machine pulls: as registries count, each layer packed by gzip.
MOST_PULLED = {"tidelog": 250, "spark": 900}
_USER = 10001
_RELEASE = "bookworm"
# A root as Debian's slim images have it: with the merged /usr from the start, and so without Perl's program that merges
# it. What is mounted meanwhile is so for these programs alone.
_ALONE = ("unshare", "--mount")
_PURGED = 'chroot "$1" apt-get purge -y -q --autoremove usrmerge perl-modules-5.36'
_MMDEBSTRAP = (*_ALONE, "mmdebstrap", "--variant=minbase", "--include=usr-is-merged", f"--customize-hook={_PURGED}")
# What Debian's slim images leave out.
_SLIM = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/usr/share/lintian/*")
# How packages are reached here, for the steps that fetch some.
_OF_HOST = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT")

# What a try does: it says what it measured, or nothing. Raises `AssertionError`.
Check = Callable[[], str | None]


def outcomes(work: Path, only: str) -> Iterator[Outcome]:
    """Build what is asked for, and try it. Raises `ToolError`."""
    for program in ("mmdebstrap", "bwrap", "chroot"):
        if shutil.which(program) is None:
            raise ToolError(f"'{program}' is not there: apt install mmdebstrap bubblewrap")
    if os.geteuid() != 0:
        raise ToolError("steps run in a root of their own, which needs to be root")
    work.mkdir(parents=True, exist_ok=True)
    roots = Roots(work)
    try:
        for target, tried in (("tidelog", _tries_of_tidelog), ("spark", _tries_of_spark)):
            if only in target or not only:
                root = roots.of(target)
                yield from (_outcome(target, test, check) for test, check in tried(root, work).items())
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _outcome(target: str, test: str, check: Check) -> Outcome:
    began = time.monotonic()
    try:
        words, state = check() or "", PASSED
    except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        words, state = f"{type(error).__name__}: {error}"[-2000:], FAILED
    return Outcome(SUITE, f"{target}: {test}", state, time.monotonic() - began, words)


class Roots:
    """The roots of stages: each made once, by the steps of its recipe over a copy of its base's."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._recipe = stages(RECIPE.read_text(encoding="utf-8"))

    def of(self, name: str) -> Path:
        """The root of a stage, or of the image that a stage begins with."""
        root = self._work / f"root-{name if name in self._recipe else 'debian'}"
        if not root.exists():
            if name in self._recipe:
                self._make(root, self._recipe[name])
            else:
                excluded = [f"--dpkgopt=path-exclude={path}" for path in _SLIM]
                self._run("debian", [*_MMDEBSTRAP, *excluded, _RELEASE, root])
                (root / "etc/hosts").touch()
        return root

    def _make(self, root: Path, stage: Stage) -> None:
        self._run(stage.name, ["cp", "-a", "--reflink=auto", str(self.of(stage.base)), str(root)])
        folder = "/"
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        for step in steps_of(self._recipe, stage.name):
            if step.word == "ENV":
                environment |= {k: v.replace("$PATH", environment["PATH"]) for k, v in environment_of(step).items()}
            elif step.word == "WORKDIR":
                folder = step.rest
                (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif step not in stage.steps:
                continue
            elif step.word == "RUN":
                self._step(root, stage, step, folder, environment)
            elif step.word == "COPY":
                self._copy(root, step, folder)

    def _step(self, root: Path, stage: Stage, step: Step, folder: str, environment: Mapping[str, str]) -> None:
        given = {**environment, **{name: os.environ[name] for name in _OF_HOST if name in os.environ}}
        bound = [("/etc/resolv.conf", "etc/resolv.conf")]
        certificates = "/etc/ssl/certs/ca-certificates.crt"
        if "pip" in step.rest and Path(certificates).exists():
            given["PIP_CERT"] = "/run/certificates.crt"
            bound.append((certificates, "run/certificates.crt"))
        binds = []
        for of_host, inside in bound:
            (root / inside).parent.mkdir(parents=True, exist_ok=True)
            (root / inside).touch()
            binds += ["--ro-bind", os.path.realpath(of_host), f"/{inside}"]
        variables = [word for name, value in given.items() for word in ("--setenv", name, value)]
        box = ["bwrap", "--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", *binds, "--clearenv", *variables]
        # Debian's programs change users while they install.
        box += ["--cap-add", "ALL", "--chdir", folder, "--die-with-parent", "sh", "-c", step.rest]
        self._run(stage.name, box)
        for _, inside in bound[1:]:
            (root / inside).unlink(missing_ok=True)

    def _copy(self, root: Path, step: Step, folder: str) -> None:
        *sources, target = step.words
        origin = self.of(step.options["from"]) if "from" in step.options else ROOT
        into = root / target.lstrip("/") if target.startswith("/") else root / folder.lstrip("/") / target
        for source in sources:
            path = origin / source.lstrip("/")
            to = into / path.name if target.endswith("/") or target == "." else into
            to.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.so") if origin == ROOT else None
                shutil.copytree(path, to, symlinks=True, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy2(path, to)
                if "chmod" in step.options:
                    to.chmod(int(step.options["chmod"], 8))

    def _run(self, stage: str, command: Sequence[str | Path]) -> None:
        built(command, self._work / f"{stage}.log", cwd=self._work)


def pulled_and_kept(root: Path) -> tuple[float, float]:
    """Megabytes that a machine pulls, and that it keeps."""
    packed, kept = _Counted(), 0
    zipped = gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6)  # type: ignore[arg-type]
    with zipped, tarfile.open(fileobj=zipped, mode="w|") as archive:
        archive.add(root, ".")
    for folder, _, files in os.walk(root):
        kept += sum(os.lstat(os.path.join(folder, name)).st_blocks * 512 for name in files)
    return packed.count / 1e6, kept / 1e6


class _Counted:
    count = 0

    def write(self, data: bytes) -> int:
        self.count += len(data)
        return len(data)

    def flush(self) -> None:
        pass


def boxed(root: Path, *command: str, share: Path | None = None) -> list[str]:
    """A command line in a container of this root."""
    recipe = stages(RECIPE.read_text(encoding="utf-8"))
    environment: dict[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    for step in steps_of(recipe, root.name.removeprefix("root-")):
        if step.word == "ENV":
            environment |= {k: v.replace("$PATH", environment["PATH"]) for k, v in environment_of(step).items()}
    variables = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    shared = ["--bind", str(share), "/lake"] if share else []
    # What a kubelet writes for a pod.
    hosts = root.with_name("hosts")
    hosts.write_text("127.0.0.1 localhost pod\n", encoding="utf-8")
    return [
        "setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--",
        "bwrap", "--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", *shared,
        "--ro-bind", str(hosts), "/etc/hosts", "--unshare-uts", "--hostname", "pod",
        "--unshare-user", "--uid", str(_USER), "--gid", str(_USER), "--unshare-pid", "--cap-drop", "ALL",
        "--chdir", "/tmp", "--clearenv", *variables, "--die-with-parent", "--", *command,
    ]  # fmt: skip


def _said(root: Path, *command: str, **more: Path) -> str:
    done = subprocess.run(boxed(root, *command, **more), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _size(root: Path) -> str:
    pulled, kept = pulled_and_kept(root)
    most = MOST_PULLED[root.name.removeprefix("root-")]
    assert pulled <= most, f"{pulled:.0f} MB are pulled, and {most} are the most"
    return f"{pulled:.0f} MB pulled, {kept:.0f} MB on disk"


def _tries_of_tidelog(root: Path, work: Path) -> dict[str, Check]:
    commands = ("broker start", "registry start", "console", "connect start", "mirror start", "metrics", "maintain")

    def helps() -> None:
        for command in commands:
            assert "Usage" in _said(root, "tidelog", *command.split(), "--help")

    def has_no_java() -> None:
        found = [path for path in ("java", "gcc", "pip", "pip3") if any(root.glob(f"usr/bin/{path}*"))]
        assert found == [], found

    return {
        "its size": lambda: _size(root),
        "each command is there": helps,
        "no JVM, no compiler, no pip": has_no_java,
        "a broker serves, is healthy, reads in native code, and drains": lambda: _broker(root, work / "lake"),
    }


def _broker(root: Path, lake: Path) -> None:
    """Start a broker as the image's user; produce, consume; look at its health and its log; stop it."""
    lake.mkdir()
    os.chown(lake, _USER, _USER)
    ports = free_ports(2)
    line = ["/usr/bin/tini", "-s", "--", "tidelog", "broker", "start", "--log-format", "json", "--no-maintain"]
    line += ["--listener", f"127.0.0.1:{ports[0]}", "--metrics", f"127.0.0.1:{ports[1]}"]
    with _running(boxed(root, *line, share=lake)) as broker:
        assert broker.stdout is not None
        ready = broker.stdout.readline().decode()
        assert "is ready" in ready, ready + (broker.stderr.read().decode() if broker.stderr else "")
        for path in ("healthz", "readyz"):
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}/{path}") as answer:
                assert answer.status == 200
        _round_trip(f"127.0.0.1:{ports[0]}")
        _end(broker)
        log = [json.loads(line) for line in broker.stderr.read().decode().splitlines()] if broker.stderr else []
    assert broker.returncode == 0, broker.returncode
    said = [line["message"] for line in log]
    assert any("native code" in message for message in said), said
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in log)


def _end(box: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the first process within the box, as a cluster sends it; the box itself ends with it."""
    children = Path(f"/proc/{box.pid}/task/{box.pid}/children").read_text().split()
    grandchildren = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in children]
    for pid in [pid for pids in grandchildren for pid in pids] or children:
        os.kill(int(pid), 15)
    box.wait(60)


def _round_trip(address: str) -> None:
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": address})
    producer.produce("orders", value=b"tea")
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["orders"])
        message = consumer.poll(60)
        assert message is not None
        assert message.value() == b"tea"
    finally:
        consumer.close()


def _tries_of_spark(root: Path, work: Path) -> dict[str, Check]:
    def job() -> None:
        lake = work / "spark-lake"
        lake.mkdir()
        os.chown(lake, _USER, _USER)
        _said(root, "tidelog", "topic", "create", "events", share=lake)
        line = ["env", "SPARK_DRIVER_BIND_ADDRESS=127.0.0.1", "spark-entrypoint", "driver", "--master", "local[1]"]
        line += ["--conf", "spark.ui.enabled=false", "/opt/tidelog/jobs/maintain.py", "--lake", "/lake"]
        said = _said(root, *line, "--format", "json", share=lake)
        topics = json.loads(said[said.index("{") :])["topics"]
        assert [topic["topic"] for topic in topics] == ["events"], said

    return {"its size": lambda: _size(root), "a job of maintenance, as Spark's driver is started": job}


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
