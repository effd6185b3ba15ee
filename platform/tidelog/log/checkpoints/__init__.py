"""tidelog.log.checkpoints: checkpoints of the log, read and written."""
