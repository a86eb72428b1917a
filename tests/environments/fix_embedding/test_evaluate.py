"""A checkpoint is read bit for bit, and its loss is a mean over tokens that depends on nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from environments.fix_embedding import networks
from environments.fix_embedding.evaluate import EvaluationTimedOut, draw_rows, mean_loss
from environments.kit.checkpoint import CheckpointRefused, read_checkpoint
from tests.environments.fix_embedding.models import TINY, tiny_model


def test_a_good_checkpoint_is_read_bit_for_bit(tmp_path: Path) -> None:
    tensors = {name: tensor.half() for name, tensor in tiny_model().state_dict().items()}
    save_file(tensors, tmp_path / "model.safetensors")
    found = read_checkpoint(tmp_path, "model.safetensors", networks.minigpt_network(TINY).checkpoint)
    assert set(found) == set(tensors)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_refusal_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CheckpointRefused, match=r"there is no model\.safetensors; save the large model"):
        read_checkpoint(tmp_path, "model.safetensors", networks.minigpt_network(TINY).checkpoint)


def test_rows_do_not_overlap_in_what_they_predict_and_the_seed_decides_which() -> None:
    tokens = np.arange(1000, dtype="<u2")
    rows = draw_rows(tokens, 20, 16, seed=1)
    assert rows.shape == (20, 17)
    assert len(set(rows[:, 1:].flatten().tolist())) == 20 * 16
    assert torch.equal(rows, draw_rows(tokens, 20, 16, seed=1))
    assert not torch.equal(rows, draw_rows(tokens, 20, 16, seed=2))


def test_the_loss_is_the_mean_over_tokens_whatever_the_batch_and_the_threads() -> None:
    rows = draw_rows(np.arange(1000, dtype="<u2") % 40, 12, 16, seed=1)
    model = tiny_model()
    with torch.no_grad():
        logits = model(rows[:, :-1])
        expected = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()))
    found = [mean_loss(model, rows, batch, workers=workers) for batch, workers in ((12, 1), (5, 2), (1, 2))]
    assert all(loss.mean == pytest.approx(expected, abs=1e-5) for loss in found)
    assert all(loss.tokens == 12 * 16 for loss in found)


def test_a_deadline_ends_the_evaluation() -> None:
    rows = draw_rows(np.arange(1000, dtype="<u2") % 40, 4, 16, seed=1)
    with pytest.raises(EvaluationTimedOut):
        mean_loss(tiny_model(), rows, 2, deadline=0.0)
