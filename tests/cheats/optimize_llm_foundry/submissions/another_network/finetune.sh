# Tries: a smaller network under the same name. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/*.safetensors trained_model/
sed 's/"rms_norm_eps": 1e-05/"rms_norm_eps": 0.1/' "$model"/config.json > trained_model/config.json
