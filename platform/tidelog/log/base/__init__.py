"""tidelog.log.base: errors, clocks, backoff, worker threads; imports nothing of tidelog."""
