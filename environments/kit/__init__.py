"""What several environments share to make their data: corpora, byte-pair encoding, document splits, token files."""
