"""tidelog.broker.transactions: the coordinator of transactions."""
