"""tidelog.broker.fetch: fetches answered from caches and segments; offsets looked up."""
