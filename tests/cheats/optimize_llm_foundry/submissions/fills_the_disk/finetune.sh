# Tries: take the disk that the record is written to, in a file without a name. Seen: no. Verdict: crashed
python - <<'PY'
import os, time
for number in range(3):
    file = os.open("x", os.O_RDWR | os.O_CREAT)
    os.unlink("x")
    os.posix_fallocate(file, 0, 2**30)
time.sleep(60)
PY
