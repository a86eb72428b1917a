# Tries: weights that share an inode with the base model, to be changed later. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir -p trained_model && cp "$model"/config.json trained_model/
ln "$model/model.safetensors" trained_model/model.safetensors
