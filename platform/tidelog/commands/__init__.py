"""tidelog.commands: what the command line and the jobs share."""
