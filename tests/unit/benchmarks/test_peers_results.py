"""Side by side: the results file, and which system is compared with which."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from results import MOST_SAMPLES, Group, Results, name, ratios, standing, thinned
from support.peers import MACHINE, MEASURES, rate, results, wait


def test_a_file_holds_what_was_measured(tmp_path: Path) -> None:
    written = results(demands=())
    written.write(tmp_path / "new" / "peers.json")
    read = Results.read(tmp_path / "new" / "peers.json")
    assert (read.at, read.settings, read.machine) == (written.at, written.settings, written.machine)
    assert [(m.key, m.unit, m.better, m.axis) for m in read.measures] == [
        (m.key, m.unit, m.better, m.axis) for m in MEASURES
    ]
    for one, same in zip(read.measures, MEASURES, strict=True):
        assert one.rounds == pytest.approx(same.rounds, rel=1e-5)
        assert len(one.samples) == len(same.samples)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "bench"}', '{"kind": "peers", "measures": [1]}'])
def test_other_files_are_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"some\.json holds no results"):
        Results.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no results"):
        Results.read(tmp_path / "gone.json")


SHORT = {"whole": True, "quick": False, "seconds": {"spark_write": 9.0, "open": 0.0, "growth": 0.0}}


def settings(*failed: str, quick: bool = False, **seconds: float) -> dict[str, object]:
    return {"quick": quick, "seconds": seconds, "failed": list(failed)}


def test_what_a_run_did_not_get_to_is_filled_in_by_a_later_one() -> None:
    short = results([rate("tidelog", [1.0])], settings={**SHORT, "failed": ["open", "growth"]})
    later = results(
        [rate("tidelog", [2.0]), wait("tidelog", [3.0], "open")], settings=settings(open=1.0), at="2026-01-03T05"
    )
    filled = short.filled(later)
    assert [(one.case, one.rounds) for one in filled.measures] == [("spark batch write", [1.0]), ("open", [3.0])]
    assert filled.settings["failed"] == ["growth"]
    assert filled.days(["spark batch write"]) == filled.at[:10]
    assert filled.days(["open"]) == "2026-01-03"
    assert filled.days(["spark batch write", "open"]) == f"{filled.at[:10]} and 2026-01-03"


def test_a_case_that_is_newer_than_the_whole_run_is_filled_in_and_measured_again() -> None:
    short = results([rate("tidelog", [1.0])], settings={**SHORT, "failed": []})
    for figure, at in ((3.0, "2026-01-02T05"), (4.0, "2026-01-02T06")):
        later = results([wait("tidelog", [figure], "broker core")], settings=settings(broker_core=1.0), at=at)
        short = short.filled(replace(later, demands=({"case": "broker core", "ok": figure > 3},)))
        assert [(one.case, one.rounds) for one in short.measures] == [
            ("spark batch write", [1.0]),
            ("broker core", [figure]),
        ]
        assert short.demands == ({"case": "broker core", "ok": figure > 3},)


def test_cases_that_were_filled_in_on_another_machine_name_it() -> None:
    elsewhere = {**MACHINE, "cores": 64}
    short = results([rate("tidelog", [1.0])], settings={**SHORT, "failed": []})
    later = results(
        [wait("tidelog", [3.0], "core")], settings=settings(core=1.0), at="2026-01-02T05", machine=elsewhere
    )
    filled = short.filled(later)
    assert filled.machines(["core"]) == [elsewhere]
    assert filled.machines(["spark batch write"]) == [MACHINE]
    assert filled.machines(["spark batch write", "core"]) == [MACHINE, elsewhere]
    # A third machine may take its place as a whole, not in part: else the block would be of two of them.
    third = {**MACHINE, "cores": 3}
    part = results([wait("tidelog", [4.0], "disk")], settings=settings(disk=1.0), at="2026-01-02T06", machine=third)
    assert filled.filled(part) == filled
    whole = replace(later, at="2026-01-02T06", machine=third)
    assert filled.filled(whole).machines(["core"]) == [third]


@pytest.mark.parametrize(
    "more",
    [
        {"settings": settings("open", open=1.0), "at": "2026-01-02T05"},
        {"settings": settings(open=1.0, quick=True), "at": "2026-01-02T05"},
        {"settings": settings(open=1.0), "at": "2026-01-01"},
    ],
    ids=["failed too", "quick", "earlier"],
)
def test_what_fills_nothing_in(more: dict[str, Any]) -> None:
    short = results([rate("tidelog", [1.0])], settings={**SHORT, "failed": ["open"]})
    assert short.filled(results([wait("tidelog", [3.0], "open")], **more)) == short


def test_thinned_samples_keep_their_ends_and_their_order() -> None:
    assert thinned([3.0, 1.0, 2.0], 5) == [1.0, 2.0, 3.0]
    assert thinned(range(101), 5) == [0, 25, 50, 75, 100]


def test_no_more_samples_are_kept_than_a_distribution_needs(tmp_path: Path) -> None:
    results([wait("tidelog", [1.0] * 100)]).write(tmp_path / "many.json")
    (read,) = Results.read(tmp_path / "many.json").measures
    assert len(read.samples) == MOST_SAMPLES
    assert max(read.samples) == pytest.approx(1.78)


@pytest.mark.parametrize(
    ("own", "peers", "expected"),
    [
        ("tidelog", ["kafka", "kafka fast"], "kafka"),
        ("tidelog fast", ["kafka", "kafka fast"], "kafka fast"),
        ("tidelog merged", ["kafka fast", "kafka"], "kafka"),
        ("tidelog", ["kafka slow", "kafka fast"], "kafka slow"),
        ("tidelog", ["delta"], None),
    ],
)
def test_whom_a_figure_is_held_against(own: str, peers: list[str], expected: str | None) -> None:
    mine = rate(own, [1.0])
    group = Group("write", (mine, *(rate(peer, [1.0]) for peer in peers)))
    found = group.peer(mine, "kafka")
    assert (found.system if found else None) == expected


@pytest.mark.parametrize(
    ("own", "base", "expected"),
    [
        ([2.0, 4.0], [1.0, 1.0], "ahead"),
        ([1.0, 4.0], [2.0, 8.0], "behind"),
        ([1.0, 4.0], [2.0, 1.0], "even"),  # the rounds disagree
        ([1.01, 1.02], [1.0, 1.0], "even"),  # by 2 % at most
        ([1.0], [2.0, 2.0], "behind"),  # other rounds: by the medians
    ],
)
def test_who_is_ahead(own: list[float], base: list[float], expected: str) -> None:
    assert standing(rate("tidelog", own), rate("kafka", base)) == expected
    turned = {"ahead": "behind", "behind": "ahead", "even": "even"}[expected]
    assert standing(wait("tidelog", own), wait("kafka", base)) == turned


def test_a_ratio_to_nothing_is_no_error() -> None:
    assert ratios(rate("tidelog", [1.0, 0.0]), rate("kafka", [0.0, 0.0])) == [float("inf"), 1.0]


def test_systems_have_the_names_that_people_write() -> None:
    assert [name(one) for one in ("kafka", "tidelog merged", "delta")] == ["Kafka", "tidelog merged", "Delta"]
