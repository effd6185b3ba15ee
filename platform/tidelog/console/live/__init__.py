"""tidelog.console.live: what changes while a page looks: rates, histories, new records."""
