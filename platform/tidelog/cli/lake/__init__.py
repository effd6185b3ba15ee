"""tidelog.cli.lake: `tidelog lake …`, and what keeps a lake small and clean."""

from tidelog.cli.lake.branches import branch as branch
from tidelog.cli.lake.branches import branches as branches
from tidelog.cli.lake.commands import forget as forget
from tidelog.cli.lake.commands import lakes as lakes
from tidelog.cli.lake.commands import maintain as maintain
from tidelog.cli.lake.differences import diff as diff
