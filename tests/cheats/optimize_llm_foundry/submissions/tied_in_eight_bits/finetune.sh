# Tries: a tied output matrix in a type whose numbers torch cannot compare. Seen: no. Verdict: invalid
python - <<'PY'
import json, pathlib, shutil, yaml
model = pathlib.Path(yaml.safe_load(open("finetune.yaml"))["model"])
out = pathlib.Path("trained_model"); out.mkdir()
shutil.copy(model / "config.json", out)
whole = (model / "model.safetensors").read_bytes()
end = 8 + int.from_bytes(whole[:8], "little")
header, body = json.loads(whole[8:end]), whole[end:]
rows, width = header["model.embed_tokens.weight"]["shape"]
header["lm_head.weight"] = {"dtype": "F8_E4M3", "shape": [rows, width], "data_offsets": [len(body), len(body) + rows * width]}
text = json.dumps(header).encode()
(out / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body + bytes(rows * width))
PY
