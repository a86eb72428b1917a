"""The two models: a large one whose embedding was damaged, and a small healthy one. Both are classes of `transformers`."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
TASK = json.loads((HERE / "task.json").read_text())
CONTEXT = TASK["length"]  # tokens that a row predicts
WEIGHTS = HERE / "model.safetensors"  # what you hand in; at first a copy of the damaged model
DAMAGED = HERE / "data" / "damaged.safetensors"  # the damaged model, to come back to
HELPER = HERE / "data" / "helper.safetensors"  # the small healthy one


class Model(nn.Module):
    """A causal language model of `transformers` that returns plain logits."""

    def __init__(self, which: str, dropout: float = 0.0) -> None:
        super().__init__()
        config = AutoConfig.for_model(**TASK[which])
        for key in ("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout"):
            if hasattr(config, key):
                setattr(config, key, dropout)
        self.inner = AutoModelForCausalLM.from_config(config)

    def features(self, ids: Tensor) -> Tensor:
        """Token ids [B, T] -> what the output matrix is applied to, [B, T, C]."""
        return self.inner.base_model(ids, use_cache=False).last_hidden_state

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [B, T] -> logits [B, T, vocabulary]. The output matrix is the embedding itself."""
        return self.inner(ids, use_cache=False).logits

    @property
    def embedding(self) -> nn.Module:
        """The embedding, whose `weight` is [vocabulary, C]."""
        return self.inner.get_input_embeddings()


def new_model(dropout: float = 0.0) -> Model:
    """The large architecture with random weights."""
    return Model("large", dropout)


def load_model(path: Path = WEIGHTS, dropout: float = 0.0) -> Model:
    """The large architecture with the weights of a file."""
    return _load(new_model(dropout), path)


def load_helper() -> Model:
    """The small healthy model."""
    return _load(Model("helper"), HELPER)


def save_model(model: Model, path: Path = WEIGHTS) -> None:
    """Save as float16, in one step: the file is whole at every moment. The tied output matrix is not stored twice."""
    tensors = {name: p.detach().half().contiguous().cpu() for name, p in model.inner.named_parameters()}
    part = path.with_suffix(".part")
    save_file(tensors, part)
    part.replace(path)


def _load(model: Model, path: Path) -> Model:
    missing, unexpected = model.inner.load_state_dict(
        {k: t.float() for k, t in load_file(path).items()}, strict=False
    )
    wanted = {name for name, _ in model.inner.named_parameters()}
    if unexpected or wanted.intersection(missing):
        raise ValueError(
            f"{path} does not fit: missing {sorted(wanted.intersection(missing))}, unexpected {unexpected}"
        )
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, model in (("large", load_model()), ("helper", load_helper())):
        print(f"{name}: {sum(p.numel() for p in model.parameters()):,} parameters")
        print(*(f"  {key} {tuple(p.shape)}" for key, p in model.inner.named_parameters()), sep="\n")
