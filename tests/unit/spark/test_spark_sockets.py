"""The sockets between Spark and its Python workers."""

import stat
import tempfile
from pathlib import Path

from tidelog.spark.session import unix_sockets


def test_only_this_user_enters_the_folder_of_the_sockets() -> None:
    """Over TCP a worker proves itself by a secret; over a Unix socket, by being able to open it."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as temporary:
        settings = unix_sockets(temporary)
        folder = Path(settings.pop("spark.python.unix.domain.socket.dir"))
        assert settings == {"spark.python.unix.domain.socket.enabled": "true"}
        assert (folder.parent, stat.S_IMODE(folder.stat().st_mode)) == (Path(temporary), 0o700)


def test_a_temporary_folder_whose_path_is_too_long_for_sockets_leaves_them_on_tcp(tmp_path: Path) -> None:
    temporary = tmp_path / ("x" * 60)
    temporary.mkdir()
    assert unix_sockets(str(temporary)) == {}
    assert not list(temporary.iterdir())
