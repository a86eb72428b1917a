"""From a bare checkout to a working installation, with the standard library alone."""
