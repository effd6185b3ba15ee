"""tidelog.log.records: records are checked and get their partitions."""
