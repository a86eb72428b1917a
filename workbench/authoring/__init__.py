"""For authors of environments: a small whole one to start from."""
