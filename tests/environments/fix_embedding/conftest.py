"""One thread for tensors this small, and the cut-down profile, prepared once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.environments.fix_embedding_small import Small


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, and on a busy machine threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(tmp_path_factory.mktemp("home"))
