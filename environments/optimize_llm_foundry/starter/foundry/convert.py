"""Stage 3: turns Composer's last checkpoint into a folder that AutoModel loads."""

import json
import shutil
import sys
from pathlib import Path

import torch
from options import read_options
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

PREFIXES = ("module.", "_orig_mod.", "model.")
"""What wrappers put before the names that transformers uses; the last is Composer's own, once."""


def weights_of(checkpoint, wanted):
    """Return the checkpoint's weights under the names of `wanted`."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=False)["state"]["model"]
    found = {}
    for name, weight in state.items():
        bare = name
        while bare not in wanted and (prefix := next((p for p in PREFIXES if bare.startswith(p)), None)):
            bare = bare.removeprefix(prefix)
        found[bare] = weight
    if missing := wanted.keys() - found.keys():
        raise SystemExit(f"{checkpoint} lacks {min(missing)}")
    return {name: found[name] for name in wanted}


def main(config):
    options = read_options(config)
    checkpoint = Path(options.work) / "checkpoints" / "latest-rank0.pt"
    model = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(options.model), torch_dtype=torch.float32
    )
    model.load_state_dict(weights_of(checkpoint, model.state_dict()))
    stored = json.loads((Path(options.model) / "config.json").read_text())
    model.to(getattr(torch, stored.get("dtype") or stored.get("torch_dtype") or "float32"))
    shutil.rmtree(options.output, ignore_errors=True)
    model.save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)
    print(f"convert: {options.output} holds {checkpoint.resolve().name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
