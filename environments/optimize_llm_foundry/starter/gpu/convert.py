"""Stage 3: turns the last checkpoint into a folder that AutoModel loads, and looks whether it does."""

import json
import shutil
import sys
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from options import read_options
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def main(config):
    options = read_options(config)
    checkpoints = Path(options.work) / "checkpoints"
    latest = checkpoints / (checkpoints / "latest").read_text()
    settings = AutoConfig.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_config(settings, dtype=torch.float32)
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=str(latest), no_dist=True)
    stored = json.loads((Path(options.model) / "config.json").read_text())
    dtype = getattr(torch, stored.get("dtype") or stored.get("torch_dtype") or "float32")
    model = AutoModelForCausalLM.from_config(settings, dtype=dtype)
    model.load_state_dict(state["model"])
    model.tie_weights()
    model.eval()
    shutil.rmtree(options.output, ignore_errors=True)
    model.save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)

    again = AutoModelForCausalLM.from_pretrained(options.output).eval()
    ids = torch.arange(64)[None] % model.config.vocab_size
    with torch.no_grad():
        difference = (model(ids).logits - again(ids).logits).abs().max().item()
    if difference > 1e-4:
        raise SystemExit(f"the converted model answers differently: {difference}")
    print(f"convert: {options.output} holds {latest.name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
