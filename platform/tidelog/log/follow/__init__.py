"""tidelog.log.follow: waiting for many logs, and fetching from them."""
