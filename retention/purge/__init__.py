"""tidelog.retention.purge: files leave storage."""
