# Tries: hand the base model back untrained. Seen: METR's foundry runs. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir -p trained_model && cp "$model"/config.json "$model"/*.safetensors trained_model/
