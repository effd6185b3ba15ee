"""Python's packages come by uv from where pip would take them, and by pip where uv can't."""

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.setup_parts import in_folder, load_parts

PARTS = load_parts()


@pytest.mark.parametrize(
    ("said", "variables"),
    [
        ("", {}),
        ("global.index-url='https://a.example/simple'", {"UV_DEFAULT_INDEX": "https://a.example/simple"}),
        (":env:.index-url='https://a.example/simple'", {"UV_DEFAULT_INDEX": "https://a.example/simple"}),
        (
            "global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'",
            {"UV_INDEX": "https://a.example https://b.example", "UV_INDEX_STRATEGY": "unsafe-best-match"},
        ),
        ("install.find-links='/a /b'", {"UV_FIND_LINKS": "/a,/b"}),
        ("global.cert='/etc/ssl/own.pem'", {"SSL_CERT_FILE": "/etc/ssl/own.pem"}),
        ("global.disable-pip-version-check='1'\nglobal.timeout='7'", {"UV_HTTP_TIMEOUT": "7"}),
        ("freeze.timeout='7'\nwheel.pre='1'", {}),  # of other commands
    ],
)
def test_uv_is_given_what_pip_is_configured_with(said, variables):
    assert PARTS.uv_environment(said) == variables


def test_what_uv_has_no_setting_for_is_left_to_pip():
    assert PARTS.uv_environment("global.index-url='https://a.example'\nglobal.use-deprecated='legacy-resolver'") is None


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """The module in a folder of its own, with a pip that is configured as in the test's environment."""
    module = load_parts()
    in_folder(module, tmp_path)
    (tmp_path / ".venv/.setup").mkdir()
    module.LOGS.mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    module.PYTHON = sys.executable
    return module


class Commands:
    """Runs no program: notes each with its environment; those of `fails` fail."""

    def __init__(self, parts, fails=()):
        self.parts, self.fails, self.noted = parts, fails, []

    def __call__(self, step, command, **environment):
        words = [Path(str(command[0])).name, *map(str, command[1:])]
        program = "uv" if words[0] == "uv" else "pip for uv" if "uv>=0.9" in words else "pip"
        self.noted.append((program, words, environment))
        if program in self.fails:
            raise self.parts.SetupError(f"{program} failed")

    @property
    def programs(self):
        return [program for program, _, _ in self.noted]


def install(parts, monkeypatch, fails=()):
    """What installing the extra `demo` runs."""
    commands = Commands(parts, fails)
    monkeypatch.setattr(parts, "run", commands)
    step = parts.Step("packages-demo", "packages", 1, parts.install("demo"))
    step.run(step)
    return commands


def test_uv_installs_from_the_index_of_pip(parts, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://a.example/simple")
    commands = install(parts, monkeypatch)
    assert commands.programs == ["pip for uv", "uv"]
    _, words, environment = commands.noted[-1]
    assert words[-4:] == ["--reinstall-package", "tidelog", "-e", ".[demo]"]
    assert environment["UV_DEFAULT_INDEX"] == "https://a.example/simple"


def test_what_is_set_for_uv_goes_before_what_is_set_for_pip(parts, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://a.example/simple")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://b.example/simple")
    assert "UV_DEFAULT_INDEX" not in install(parts, monkeypatch).noted[-1][2]


@pytest.mark.parametrize("fails", [("uv",), ("pip for uv",)])
def test_pip_installs_where_uv_fails(parts, monkeypatch, fails):
    commands = install(parts, monkeypatch, fails)
    assert commands.programs[-1] == "pip"
    assert commands.noted[-1][1][-3:] == ["install", "-e", ".[demo]"]


def test_pip_installs_where_it_is_configured_in_its_own_way(parts, monkeypatch):
    monkeypatch.setenv("PIP_USE_DEPRECATED", "legacy-resolver")
    assert install(parts, monkeypatch).programs == ["pip"]


def test_pip_does_not_go_on_where_uv_was_stopped(parts, monkeypatch):
    parts.PROGRAMS.stopped = True
    with pytest.raises(parts.SetupError, match="uv failed"):
        install(parts, monkeypatch, ("uv",))


@pytest.mark.parametrize(("fails", "option"), [((), "--reinstall"), (("uv",), "--force-reinstall")])
def test_what_a_killed_installer_left_is_not_trusted(parts, monkeypatch, fails, option):
    with pytest.raises(parts.SetupError):
        install(parts, monkeypatch, ("uv", "pip"))  # neither came to its end
    assert option in install(parts, monkeypatch, fails).noted[-1][1]
    assert option not in install(parts, monkeypatch, fails).noted[-1][1]


# --- a real index, on loopback -----------------------------------------------------------------------------------


def wheel(folder, name, says):
    """A wheel of version 1, whose one module says something."""
    info = f"{name}-1.dist-info"
    files = {
        f"{name}.py": f"SAYS = {says!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = io.StringIO()
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        csv.writer(record, lineterminator="\n").writerow([path, f"sha256={digest}", len(text)])
    record.write(f"{info}/RECORD,,\n")
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-1-py3-none-any.whl", "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record.getvalue()}.items():
            archive.writestr(path, text)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Tests show what fails."""


@pytest.fixture
def index(tmp_path):
    """The address of an index with one package, `tideprobe`."""
    wheel(tmp_path / "index/simple/tideprobe", "tideprobe", "from the index")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "index"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def uv_installs(parts, tmp_path, name):
    """What a package says that the real uv has installed as the real pip is configured."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    variables = parts.uv_environment(said.stdout)
    assert variables is not None
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "pip", "install", "--python", sys.executable, "--target", tmp_path / "site", name],
        env={**os.environ, **variables, "UV_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        check=True,
    )
    namespace: dict[str, str] = {}
    exec((tmp_path / "site" / f"{name}.py").read_text(), namespace)
    return namespace["SAYS"]


def test_uv_takes_packages_from_the_index_of_pips_environment(parts, tmp_path, monkeypatch, index):
    monkeypatch.setenv("PIP_INDEX_URL", index)
    assert uv_installs(parts, tmp_path, "tideprobe") == "from the index"


def test_uv_takes_packages_from_the_index_of_pips_file(parts, tmp_path, monkeypatch, index):
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert uv_installs(parts, tmp_path, "tideprobe") == "from the index"


def test_uv_takes_packages_from_each_folder_that_pip_looks_in(parts, tmp_path, monkeypatch):
    wheel(tmp_path / "one", "tideprobe", "from a folder")
    wheel(tmp_path / "two", "tidefolder", "from the other folder")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / 'one'} {tmp_path / 'two'}")
    assert uv_installs(parts, tmp_path, "tideprobe") == "from a folder"
    assert uv_installs(parts, tmp_path, "tidefolder") == "from the other folder"
