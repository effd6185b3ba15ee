"""Tables of databases as sources and sinks, through SQLAlchemy."""
