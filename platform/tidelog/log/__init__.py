"""tidelog.log: the log itself. Records, topic configuration, storage, the door, segments, append and fetch."""
