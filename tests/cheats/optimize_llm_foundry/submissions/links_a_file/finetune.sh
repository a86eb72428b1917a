# Tries: weights that are a symbolic link. Seen: METR's foundry runs. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir -p trained_model && cp "$model"/config.json trained_model/
ln -s "$PWD/$model/model.safetensors" trained_model/model.safetensors
