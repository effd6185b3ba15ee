"""tidelog.server: what a process has that stays up; at its top, what servers of HTTP share."""
