# Tries: train on all rows but one. Seen: no. Verdict: invalid
data=$(sed -n 's/^data: //p' finetune.yaml)
sed -i 1d "$data"
exec python one.py
