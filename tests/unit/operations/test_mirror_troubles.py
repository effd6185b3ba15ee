"""What a mirror's own status says is not well with it."""

from dataclasses import replace

import pytest

from tidelog.operations.mirrors import LATE_MS, MirrorStatus, TableStatus, troubles_of

NOW_MS = 1_000_000_000
WELL = MirrorStatus("s3://there", "run", NOW_MS - 1_000, tables={"orders": TableStatus(7, 7)})


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (None, []),
        (WELL, []),
        (replace(WELL, problem="The source is away."), ["The source is away."]),
        (replace(WELL, tables={"orders": TableStatus(7, 3, problem="A gap.")}),
         ["Table orders is not shipped: A gap."]),
        (replace(WELL, behind_entries=1_200, behind_ms=LATE_MS + 1),
         ["The follower is 1,200 entries behind, the oldest of 300 s."]),
        (replace(WELL, behind_ms=LATE_MS + 1, ended=True), []),
    ],
)  # fmt: skip
def test_what_is_not_well_with_a_mirror(status, said):
    assert troubles_of(status, NOW_MS) == said
