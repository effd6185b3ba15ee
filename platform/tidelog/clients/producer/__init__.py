"""tidelog.clients.producer: the Producer and its parts."""
