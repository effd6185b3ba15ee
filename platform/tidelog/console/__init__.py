"""tidelog.console: a page on a lake, and the HTTP interface behind it."""
