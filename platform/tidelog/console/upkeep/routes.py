"""Which requests are about a lake's upkeep."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.routing import ConsoleRoute, for_all, of_cluster
from tidelog.console.upkeep.health import check, doctor, run_check
from tidelog.console.upkeep.maintenance import maintenance, newest_run, run_now
from tidelog.console.upkeep.transactions import abort, open_transactions, producers

_DESCRIBE: Final = of_cluster(AclOperation.DESCRIBE)
_ALTER: Final = of_cluster(AclOperation.ALTER)

UPKEEP_ROUTES: Final = (
    ConsoleRoute("GET", "/api/transactions", open_transactions, for_all),
    ConsoleRoute("POST", "/api/transactions/abort", abort, _ALTER),
    ConsoleRoute("GET", "/api/producers", producers, for_all),
    ConsoleRoute("GET", "/api/maintenance", maintenance, _DESCRIBE),
    ConsoleRoute("GET", "/api/maintenance/run", newest_run, _DESCRIBE),
    ConsoleRoute("POST", "/api/maintenance/run", run_now, _ALTER),
    ConsoleRoute("GET", "/api/check", check, _DESCRIBE),
    ConsoleRoute("POST", "/api/check/run", run_check, _DESCRIBE, reads=True),
    ConsoleRoute("GET", "/api/doctor", doctor, _DESCRIBE),
)
