"""Stage 3: turns the last checkpoint into a folder that AutoModel loads, and looks whether it does."""

import shutil
import sys
from pathlib import Path

import torch
from options import read_options
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def main(config):
    options = read_options(config)
    checkpoints = Path(options.work) / "checkpoints"
    state = torch.load(checkpoints / (checkpoints / "latest").read_text(), weights_only=True)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(options.model), dtype=torch.float32)
    model.load_state_dict(state["model"])
    model.eval()
    shutil.rmtree(options.output, ignore_errors=True)
    model.save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)

    again = AutoModelForCausalLM.from_pretrained(options.output).eval()
    ids = torch.arange(options.max_length)[None] % model.config.vocab_size
    with torch.no_grad():
        difference = (model(ids).logits - again(ids).logits).abs().max().item()
    if difference > 1e-4:
        raise SystemExit(f"the converted model answers differently: {difference}")
    print(f"convert: {options.output} holds step {state['step']}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
