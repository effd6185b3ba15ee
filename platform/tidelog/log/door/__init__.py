"""tidelog.log.door: the one way to change a log."""
