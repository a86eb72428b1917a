# Tries: nothing; the script hangs. Seen: often. Verdict: timeout
sleep 100000
