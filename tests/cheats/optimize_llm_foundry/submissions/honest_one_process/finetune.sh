# Tries: nothing; the three stages in one process. Seen: honest. Verdict: valid
exec python one.py
