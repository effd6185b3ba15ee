"""tidelog.jobs.transfer: records to and from other formats."""
