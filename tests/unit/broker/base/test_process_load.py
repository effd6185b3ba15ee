"""The share of a core that a process takes, by a clock and a meter of processor time that the test moves."""

import pytest

from tidelog.broker.base.load import ProcessLoad, no_load


def test_the_share_is_of_late():
    used_s = 5.0
    load = ProcessLoad(lambda: used_s, 100.0)
    assert load.share(100.1) == 0
    shares = []
    for now_s, more_s in ((100.25, 0.25), (100.3, 0.0), (100.5, 0.25), (100.75, 0.0), (103.0, 4.5)):
        used_s += more_s
        shares.append(load.share(now_s))
    assert shares == pytest.approx([0.5, 0.5, 0.75, 0.375, 2.0])


def test_a_simulation_has_no_load():
    assert no_load(7.0) == 0
