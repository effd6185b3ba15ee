"""tidelog.clients.consumer: the Consumer and its parts."""
