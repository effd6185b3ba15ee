"""tidelog.log.base: errors, clocks, backoff, a rate, worker threads; imports nothing of tidelog."""
