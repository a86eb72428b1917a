"""A process with the GPU to itself maps the shared memory, watches the input, and writes the result. Seen: pygpubench, carried further. Expected: valid or invalid or crashed or timeout."""

import subprocess
import sys

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


HELPER = """
import sys
sys.path[:0] = {path!r}
import torch
from environments.triton_cumsum.timing.cuda_driver import SharedRegion, tensor_over

torch.zeros(1, device="cuda")
fd_in, fd_out, size_in, size_out, length, step = map(int, sys.argv[1:])
x_at = SharedRegion.open(fd_in, size_in, 0).address
y_at = SharedRegion.open(fd_out, size_out, 0).address
pairs = [(tensor_over(x_at + at, (length,), "int32", "cuda:0"), tensor_over(y_at + at, (length,), "int32", "cuda:0"))
         for at in range(0, size_in - 4 * length + 1, step)]
seen = [None] * len(pairs)
print("ready", flush=True)
while True:
    for number, (x, y) in enumerate(pairs):
        now = x[-8:].tolist()
        if seen[number] != now:
            seen[number] = now
            positive = (x > 0).to(torch.int32)
            odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
            torch.cumsum(x * odd, 0, dtype=torch.int32, out=y)
            torch.cuda.synchronize()
"""
helpers = []


def start(x):
    """Take the descriptors out of the frames around, and start a process that has them."""
    frame = sys._getframe()
    found = {}
    while frame is not None:
        for thing in frame.f_locals.values():
            found.update(getattr(thing, "descriptors", None) or {})
            if hasattr(thing, "_arrays"):
                layout = thing._arrays._layout
        frame = frame.f_back
    pair = (found["timing-inputs"], found["timing-outputs"])
    sizes = [layout.input_bytes, layout.output_bytes, x.numel(), layout.output.stride]
    command = [sys.executable, "-c", HELPER.format(path=sys.path), *map(str, pair), *map(str, sizes)]
    helpers.append(subprocess.Popen(command, pass_fds=pair, stdout=subprocess.PIPE))
    helpers[0].stdout.readline()


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        out.copy_(honest(x))
        return out
    if not helpers:
        start(x)
    return out
