# Tries: weights cut in the middle. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/config.json trained_model/
head -c 100000 "$model"/model.safetensors > trained_model/model.safetensors
