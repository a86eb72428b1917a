# Tries: the base model's own files, moved. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mv "$model" trained_model
