"""A session as one HTML page."""
