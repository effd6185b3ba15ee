"""`tidelog connect …`."""
