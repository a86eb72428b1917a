"""One attempt, from its start to a verified record."""
