"""Commands that are forked from a process of tests leave alone what belongs to it."""

import asyncio
import atexit
import subprocess
from pathlib import Path

from support.forked_commands import forked_commands


def test_a_command_leaves_servers_folders_and_loops_of_the_tests_alone(tmp_path: Path) -> None:
    """A command ends as Python does. A loop that it closed would hear of nothing here: both have one epoll(7)."""
    mark, runner = tmp_path / "mark", asyncio.Runner()
    runner.get_loop()
    atexit.register(mark.touch)
    atexit.register(runner.close)
    try:
        with forked_commands(tmp_path / "tidelog"):
            done = subprocess.run([tmp_path / "tidelog", "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("tidelog ")
        assert not mark.exists()
        assert runner.run(asyncio.wait_for(asyncio.to_thread(str, 7), 60)) == "7"
    finally:
        atexit.unregister(mark.touch)
        atexit.unregister(runner.close)
        runner.close()
