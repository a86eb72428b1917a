"""What holds for every test: no trace in the user's own folders, no GPU tests without a GPU."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest

SLOW_TIMEOUT_S = 900
OWN_VARIABLES = (
    "REBENCH_SESSION",
    "REBENCH_WORKBENCH_KEY",
    "REBENCH_WORKBENCH_KEY_FILE",
    "REBENCH_VENV",
    "NO_COLOR",
)


QUICK = {"on": False}
STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave a test where it would start a process")


def pytest_configure(config: pytest.Config) -> None:
    # Hosts and recorders start in other folders, where only an installed package is found.
    if not list(distributions(name="rebench-workbench")):
        pytest.exit(
            "rebench-workbench is not installed in this Python: run scripts/test, or pip install -e .", 3
        )
    if config.getoption("quick"):
        sys.addaudithook(_leave_where_a_process_would_start)


def _leave_where_a_process_would_start(event: str, _arguments: tuple[object, ...]) -> None:
    if QUICK["on"] and event in STARTS_A_PROCESS:
        pytest.skip("starts a process")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    QUICK["on"] = item.config.getoption("quick")
    try:
        return (yield)
    finally:
        QUICK["on"] = False


@pytest.fixture(scope="session", autouse=True)
def no_trace_in_the_users_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stores and prepared files go to a folder of this test run; the user's git configuration is not read."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REBENCH_HOME", str(folder / "rebench"))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("HF_HUB_OFFLINE", "1")
        for name in OWN_VARIABLES:
            patch.delenv(name, raising=False)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_gpu = pytest.mark.skip(reason="needs an NVIDIA GPU")
    gpu_here = Path("/dev/nvidiactl").exists() or Path("/proc/driver/nvidia/version").exists()
    for item in items:
        if item.get_closest_marker("gpu") and not gpu_here:
            item.add_marker(no_gpu)
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))
