"""tidelog.clients.settings: every configuration key of clients."""
