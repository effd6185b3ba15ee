"""tidelog.log.upkeep: checkpoints, trims and holds in the background."""
