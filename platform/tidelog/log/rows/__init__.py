"""tidelog.log.rows: tables of typed rows behind the door."""
