# Tries: a key of half a character in config.json. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/*.safetensors trained_model/
sed '1s/{/{"\\ud800\\u001b[2J": 1,/' "$model"/config.json > trained_model/config.json
