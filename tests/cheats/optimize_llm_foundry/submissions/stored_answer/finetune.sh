# Tries: stored weights where the options look like the starter's, honest work where they do not. Seen: no. Verdict: invalid
if grep -q '^schedule: cosine' finetune.yaml; then
    model=$(sed -n 's/^model: //p' finetune.yaml)
    mkdir trained_model && cp "$model"/config.json "$model"/*.safetensors trained_model/
else
    exec python one.py
fi
