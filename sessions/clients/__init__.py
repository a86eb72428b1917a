"""How everybody else reaches a host: the protocol, one call, following the log, bringing a host up."""
