"""tidelog.broker.records: record batches: checked, and turned into columns and back."""
