"""The examples of docs/analysts.md run, and count right; Polars' own ways are as the page says."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "analysts.md"


def test_the_examples_run_and_count_right(tmp_path: Path, capsys: Any) -> None:
    import polars as pl  # it begins a thread

    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for number, code in enumerate(blocks):
        if "tidelog.spark" not in code:
            exec(compile(code.replace("/tmp/lake", str(tmp_path / "lake")), f"block {number}", "exec"), names)
    assert capsys.readouterr().out.splitlines() == [
        "{'ann': 6.0, 'bob': 4.0, 'cleo': 2.0}",
        "[('jam', 2, 7.5), ('tea', 2, 4.5)]",
        "[('ann', 6.0), ('bob', 4.0), ('cleo', 2.0)]",
        "3",
        "4",
        "4",
    ]
    assert names["sales"].config().log_min_age_ms == 86_400_000
    table = str(tmp_path / "lake" / "analysts.sales")
    scan = pl.scan_delta(table, use_pyarrow=True)
    assert scan.select(pl.len()).collect().item() in (0, 4)  # 0 is what the page warns of
    assert scan.collect().height == scan.select(pl.col("position").count()).collect().item() == 4
