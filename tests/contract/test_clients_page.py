"""The examples of docs/clients.md run, one after another, on a lake of their own."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"


def test_the_examples_run(tmp_path, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    names = {}
    for number, code in enumerate(blocks):
        exec(compile(code.replace("/tmp/lake", str(tmp_path / "lake")), f"block {number}", "exec"), names)
    assert sorted(names["seen"]) == sorted(f"sale {number}".encode() for number in range(100))
    assert capsys.readouterr().out.splitlines() == [
        "tea 12",
        "100 100",
        "['clicks', 'refunds', 'sales', 'stock']",
        "[('sales', 0, 100)]",
    ]
