"""Which build of torch the set-up takes, and what it refuses to take unasked."""

from pathlib import Path

import pytest

from scripts.bootstrap.pip import PipFailed
from scripts.bootstrap.talk import Stopped, Talk
from scripts.bootstrap.torch_build import TORCH, install_torch, sign_of_cuda
from tests.scripts.fakes import FakePip

CPU_LINES = [
    "Looking in links: wheels",
    "Collecting torch==2.13.0",
    "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_aarch64.whl (112.4 MB)",
    "Collecting filelock",
    "  Downloading filelock-4.3.1-py3-none-any.whl.metadata (2.1 kB)",
    "Processing ./wheels/torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl",
    "Installing collected packages: filelock, torch",
    "Successfully installed filelock-4.3.1 torch-2.13.0+cpu",
]
CUDA_SIGNS = [
    "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (526.6 MB)",
    "  Using cached torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (526.6 MB)",
    "Processing ./wheels/torch-2.13.0+cu130-cp311-cp311-linux_x86_64.whl",
    "Collecting nvidia-cudnn-cu13==9.24.0.43 (from torch==2.13.0)",
    "Collecting triton==3.9.0 (from torch==2.13.0)",
    "Collecting cuda-toolkit==13.0.2 (from torch==2.13.0)",
    "Processing ./wheels/nvidia_cublas-13.1.1.3-py3-none-manylinux_2_27_x86_64.whl",
]


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")


@pytest.mark.parametrize("line", CUDA_SIGNS)
def test_pip_shows_a_cuda_build_before_it_fetches_one(line: str) -> None:
    assert sign_of_cuda(line)


@pytest.mark.parametrize("line", [*CPU_LINES, "", "Collecting"])
def test_a_cpu_build_shows_no_sign_of_cuda(line: str) -> None:
    assert not sign_of_cuda(line)


def test_a_cpu_build_is_simply_installed(fake_pip: FakePip, talk: Talk, calls: Path) -> None:
    assert "2 packages, 112 MB fetched" in install_torch(fake_pip(CPU_LINES), talk, gpu=False, environ={})
    assert calls.read_text().splitlines()[-1].endswith(TORCH)
    assert "index-url" not in calls.read_text()


@pytest.mark.parametrize("sign", CUDA_SIGNS)
def test_a_cuda_build_without_a_gpu_stops_pip_at_once_and_says_what_to_do(
    fake_pip: FakePip, talk: Talk, sign: str
) -> None:
    with pytest.raises(Stopped) as stopped:
        install_torch(fake_pip(["Collecting torch==2.13.0", sign], hang=True), talk, gpu=False, environ={})
    for remedy in ("REBENCH_TORCH_INDEX", "PIP_FIND_LINKS", "REBENCH_ALLOW_CUDA=1", "3 GB"):
        assert remedy in str(stopped.value)
    assert stopped.value.code == 3


def test_on_a_terminal_the_question_is_asked_and_no_means_no(fake_pip: FakePip, talk: Talk) -> None:
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(Stopped):
        install_torch(fake_pip(CUDA_SIGNS, hang=True), talk, gpu=False, environ={}, ask=no)
    assert "527 MB for its wheel alone" in asked[0]


@pytest.mark.parametrize("gpu", [True, False])
def test_a_gpu_or_leave_takes_the_cuda_build(
    fake_pip: FakePip, talk: Talk, calls: Path, *, gpu: bool
) -> None:
    environ = {} if gpu else {"REBENCH_ALLOW_CUDA": "1"}
    install_torch(fake_pip(CUDA_SIGNS), talk, gpu=gpu, environ=environ)
    assert len(calls.read_text().splitlines()) == 1


def test_an_index_of_the_users_is_where_torch_comes_from(fake_pip: FakePip, talk: Talk, calls: Path) -> None:
    environ = {"REBENCH_TORCH_INDEX": "https://wheels.example/cpu", "REBENCH_TORCH": "torch==2.9.1"}
    install_torch(fake_pip(CPU_LINES), talk, gpu=False, environ=environ)
    assert calls.read_text().strip().endswith("--index-url https://wheels.example/cpu torch==2.9.1")


def test_a_failure_of_pip_is_not_taken_for_a_cuda_build(fake_pip: FakePip, talk: Talk) -> None:
    with pytest.raises(PipFailed):
        install_torch(
            fake_pip(["ERROR: No matching distribution found for torch==2.13.0"], 1),
            talk,
            gpu=False,
            environ={},
        )
