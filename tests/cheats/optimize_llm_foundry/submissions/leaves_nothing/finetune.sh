# Tries: end at once without a result. Seen: no. Verdict: invalid
exit 0
