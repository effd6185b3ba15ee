"""Members of both protocols over the pure rules, without a log: fast enough for very many seeds. Repeats some.

export PYTHONPATH=tests:tests/reliability
python tests/simulation/members_sim_run.py 17                  # one seed
python tests/simulation/members_sim_run.py 0 --runs 100000     # many, with what they found

What a run is, is in `support.migrating`; `make test` has some of them as properties, with planted mistakes
(`tests/unit/groups/rules/modern`), and `mixed_sim_run.py` has members over a log, in processes that die.
"""

import hashlib
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from sim_running import Planted, repeat
from support.migrating import MixedGroup


@dataclass(frozen=True)
class MembersReport:
    """The result of a run. `counts`: what happened in it."""

    problems: list[str]
    digest: str
    counts: Mapping[str, int] = field(default_factory=Counter)


def run_members(seed: int, planted: Planted = nullcontext, trace: list[str] | None = None) -> MembersReport:
    """Run one seed: heartbeats are decided together in every other one."""
    del trace  # there is none
    problems = []
    group = MixedGroup(seed, joint=seed % 2 == 1)
    with planted():
        try:
            group.run()
        except AssertionError:
            problems.append(traceback.format_exc(limit=-1).replace("\n", " "))
    digest = hashlib.sha256(repr((group.heard.view.group, group.heard.writes)).encode()).hexdigest()
    return MembersReport(
        problems, digest, Counter(writes=group.heard.writes, turned_up=group.ups, turned_back=group.downs)
    )


if __name__ == "__main__":
    sys.exit(repeat(__doc__, run_members, {}, lambda report: report.counts))
