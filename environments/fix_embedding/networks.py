"""Which tensors the large model has, and the network that computes it: ours, or a class of `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import AssetsMissing, ProfileUnavailable
from environments.fix_embedding.settings import Family
from environments.kit.checkpoint import Wanted

if TYPE_CHECKING:
    from torch import Tensor, nn

    from environments.kit.minigpt.network import MiniGPT

TASK_FILE = "task.json"
LAYOUT_FILE = "layout.json"
"""Beside the protected files: `Layout`, so that a check needs neither torch nor `transformers`."""


class Layout(msgspec.Struct, frozen=True):
    """What a checkpoint of the large model must hold."""

    tensors: dict[str, tuple[int, ...]]
    """Name -> shape."""
    head: str
    """What an untied output matrix would be called."""


def wanted_of(tensors: dict[str, tuple[int, ...]], head: str | None = None) -> Wanted:
    """Return the checkpoint with these tensors, as it is asked of a participant."""
    return Wanted(tensors, head, model="the large model")


class Network(msgspec.Struct, frozen=True):
    """One model: its tensors, and what they are called where it matters."""

    family: Family
    sizes: dict[str, Any]
    """Keys of `MiniGPTConfig`, or a configuration of `transformers`."""
    layout: dict[str, tuple[int, ...]]
    embedding: str
    head: str
    """What an untied output matrix would be called."""

    @property
    def checkpoint(self) -> Wanted:
        """What a checkpoint of it must hold."""
        return wanted_of(self.layout, self.head)

    def build(self, tensors: dict[str, Tensor]) -> nn.Module:
        """Return the network with `tensors` (already checked against the layout) in float32, giving logits."""
        module = _minigpt(self.sizes) if self.family is Family.MINIGPT else _transformers(self.sizes)
        module.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
        return module.eval()

    def random(self) -> nn.Module:
        """Return the network with fresh weights from torch's own generator."""
        if self.family is Family.TRANSFORMERS:
            fresh: nn.Module = _transformers(self.sizes)
            return fresh
        module = _minigpt(self.sizes)
        module.initialise()
        return module


def minigpt_network(sizes: dict[str, Any]) -> Network:
    """Return a network of our own."""
    from environments.kit.minigpt.network import MiniGPTConfig, tensor_shapes

    layout = tensor_shapes(MiniGPTConfig(**sizes))
    return Network(Family.MINIGPT, sizes, layout, embedding="embedding.weight", head="head.weight")


def transformers_network(sizes: dict[str, Any]) -> Network:
    """Return a causal language model of `transformers`, whose output matrix must be its embedding.

    Raises:
        AssetsMissing: it is not tied.
    """
    import torch

    with torch.device("meta"):
        module = _transformers(sizes)
    inner: Any = module.inner
    names = {parameter: name for name, parameter in inner.named_parameters()}
    embedding, output = inner.get_input_embeddings().weight, inner.get_output_embeddings().weight
    if embedding is not output:
        raise AssetsMissing(
            f"the model {sizes.get('model_type')} has an output matrix of its own; a tied one is needed"
        )
    layout = {name: tuple(parameter.shape) for parameter, name in names.items()}
    return Network(Family.TRANSFORMERS, sizes, layout, embedding=names[embedding], head="lm_head.weight")


def network_of(family: Family, sizes: dict[str, Any]) -> Network:
    """Return the network of a family."""
    return minigpt_network(sizes) if family is Family.MINIGPT else transformers_network(sizes)


def read_task(folder: Path) -> dict[str, Any]:
    """Return `task.json`: sizes of both models, and the length of a row.

    Raises:
        AssetsMissing: it is not there.
    """
    try:
        task: dict[str, Any] = json.loads((folder / TASK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AssetsMissing(
            f"{folder / TASK_FILE} cannot be read ({error}); run `rebench-workbench env prepare` again"
        ) from error
    return task


def read_layout(family: Family, public: Path, protected: Path) -> Layout:
    """Return the layout that `prepare` wrote, or that of the network itself where an older one wrote none."""
    try:
        return msgspec.json.decode((protected / LAYOUT_FILE).read_bytes(), type=Layout)
    except FileNotFoundError:
        network = network_of(family, read_task(public)["large"])
        return Layout(network.layout, network.head)
    except (OSError, msgspec.MsgspecError) as error:
        raise AssetsMissing(
            f"{protected / LAYOUT_FILE} cannot be read ({error}); run `rebench-workbench env prepare` again"
        ) from error


def require_device(device: str) -> None:
    """Do nothing where torch sees the device.

    Raises:
        ProfileUnavailable: it does not.
    """
    import torch

    if device != "cpu" and not torch.cuda.is_available():
        raise ProfileUnavailable(
            f"fix_embedding: this profile computes on {device}, but torch {torch.__version__} sees no GPU here; "
            "see `rebench-workbench doctor`, or use the profile cpu"
        )


def _minigpt(sizes: dict[str, Any]) -> MiniGPT:
    from environments.kit.minigpt.network import build

    return build(sizes)


def _transformers(sizes: dict[str, Any]) -> Any:
    """Return the model behind a wrapper whose checkpoint names are the model's own."""
    from torch import nn
    from transformers import AutoConfig, AutoModelForCausalLM

    class Logits(nn.Module):
        """Token ids [batch, length] to logits [batch, length, vocabulary]."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = AutoModelForCausalLM.from_config(AutoConfig.for_model(**sizes))

        def forward(self, ids: Tensor) -> Tensor:
            logits: Tensor = self.inner(ids, use_cache=False).logits
            return logits

        def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
            return self.inner.load_state_dict(state_dict, strict=strict, assign=assign)

    return Logits()
