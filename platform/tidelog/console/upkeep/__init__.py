"""tidelog.console.upkeep: transactions, producers, maintenance, checks and the doctor."""
