"""What several environments share: settings and keys, corpora into token files, checkpoints, ln(loss - c), starter files, a small GPT."""
