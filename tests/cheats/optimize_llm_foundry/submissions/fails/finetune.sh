# Tries: nothing; the script breaks. Seen: often. Verdict: crashed
python -c 'raise SystemExit(3)'
exit 3
