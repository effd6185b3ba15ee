"""tidelog.retention.compaction: key compaction."""
