"""tidelog.console.base: what all parts of the console share: calls, rights, routes, the lake that is shown."""
