"""Which requests are about a lake's upkeep."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.calls import for_all, of_cluster
from tidelog.console.upkeep.health import check, doctor, run_check
from tidelog.console.upkeep.maintenance import maintenance, newest_run, run_now
from tidelog.console.upkeep.transactions import abort, open_transactions, producers
from tidelog.server.routes import Route

_DESCRIBE: Final = of_cluster(AclOperation.DESCRIBE)
_ALTER: Final = of_cluster(AclOperation.ALTER)

UPKEEP_ROUTES: Final = (
    Route("GET", "/api/transactions", open_transactions, for_all),
    Route("POST", "/api/transactions/abort", abort, _ALTER),
    Route("GET", "/api/producers", producers, for_all),
    Route("GET", "/api/maintenance", maintenance, _DESCRIBE),
    Route("GET", "/api/maintenance/run", newest_run, _DESCRIBE),
    Route("POST", "/api/maintenance/run", run_now, _ALTER),
    Route("GET", "/api/check", check, _DESCRIBE),
    Route("POST", "/api/check/run", run_check, _DESCRIBE, reads=True),
    Route("GET", "/api/doctor", doctor, _DESCRIBE),
)
