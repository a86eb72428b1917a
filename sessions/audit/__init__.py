"""After the fact: verifying a record, bundling it, judging it, scoring its snapshots again."""
