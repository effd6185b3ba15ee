"""A program written for confluent-kafka runs with its import and its address changed, and nothing else."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("confluent_program.py")

EXPECTED = """\
created orders
again: TOPIC_ALREADY_EXISTS
partitions [0, 1, 2]
policy delete
delivered 1000, left 0, partitions of a key 1
committed 1000
watermarks 0 True
sought 0 0
consumed 1000, distinct 1000, assigned [0, 1, 2]; revoked [0, 1, 2]
groups [('billing', 'EMPTY')]
lag 0
topics []
"""


def test_the_program_runs(tmp_path):
    text = PROGRAM.read_text(encoding="utf-8")
    assert "import tidelog" not in text
    assert "from tidelog" not in text
    moved = tmp_path / "program.py"
    moved.write_text(text.replace("from confluent_kafka", "from tidelog"), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(moved), str(tmp_path / "lake")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.stdout, ran.returncode) == (EXPECTED, 0), ran.stderr
