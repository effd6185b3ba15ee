"""tidelog.console.beside: what runs beside a lake: brokers, schemas, connectors, mirrors."""
