"""`python leash.py COMMAND...`: runs a command until it ends, or until our stdin does: then the command is stopped.

Whoever starts us holds the other end of that pipe. When it dies, however it dies, the pipe ends, and so does the
command with all the processes of its group; that works on every system and needs nobody's good will.
"""

import os
import signal
import subprocess
import sys
import threading

PATIENCE_S = 20.0


def main() -> int:
    """The command's exit code."""
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_stop_at_end_of_input, args=(child,), daemon=True).start()
    code = child.wait()
    _signal_group(child.pid, signal.SIGKILL)
    return code


def _stop_at_end_of_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):
        pass
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        _signal_group(child.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # macOS refuses for a group of nothing but zombies.
        return


if __name__ == "__main__":
    sys.exit(main())
