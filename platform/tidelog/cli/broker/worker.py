"""A broker as a process that `tidelog broker start --processes` starts: its plan comes by standard input.

So no command line shows the store's secrets, and the end of standard input says that the parent is gone.
"""

import sys

from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
from tidelog.commands.failures import FAILED, WRONG_USAGE, UsageProblemError, complain
from tidelog.log.base.errors import TidelogError


def main() -> int:
    """Run the broker; the exit code."""
    plan = BrokerPlan.from_stdin()
    from tidelog.cli.broker.serving import serve

    def ready(line: ReadyLine) -> None:
        sys.stdout.write(f"{line.to_json()}\n")
        sys.stdout.flush()

    try:
        serve(plan, ready, tied=True)
    except (TidelogError, UsageProblemError, OSError) as e:
        complain(e, debug=plan.debug, as_json=plan.as_json)
        return WRONG_USAGE if isinstance(e, UsageProblemError) else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
