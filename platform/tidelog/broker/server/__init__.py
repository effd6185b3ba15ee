"""tidelog.broker.server: listeners, connections and their bounds; a broker's start and its end."""
