"""tidelog.log.appends: the ways of records into a topic's log, and what each repeats when the log has changed."""
