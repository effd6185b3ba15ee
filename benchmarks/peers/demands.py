"""What `make bench-peers` demands of tidelog."""

from measures import Demand

DEMANDS: tuple[Demand, ...] = ()
