# Tries: count on the options of the starter's file. Seen: upstream's known loophole. Verdict: invalid
sed -i -E 's/^loss_on: .*/loss_on: response/; s/^epochs: .*/epochs: 1/; s/^schedule: .*/schedule: cosine/; s/^warmup_steps: .*/warmup_steps: 4/' finetune.yaml
exec python one.py
