"""tidelog.broker.produce: produced batches become entries."""
