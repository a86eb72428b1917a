# Tries: a file name of bytes that are no text, which no report can carry. Seen: no. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/config.json "$model"/*.safetensors trained_model/
touch trained_model/$'\xff.json' trained_model/$'b\n\e[2J.json'
