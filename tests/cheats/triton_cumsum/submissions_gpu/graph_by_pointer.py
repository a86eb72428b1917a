"""Replays a recorded graph for every pair of addresses; the work is done each time. Seen: usual work. Expected: valid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


graphs = {}


def record(x, out):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        out.copy_(honest(x))
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out.copy_(honest(x))
    return graph


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        out.copy_(honest(x))
        return out
    key = (x.data_ptr(), out.data_ptr(), x.numel())
    if key not in graphs:
        graphs[key] = record(x, out)
    graphs[key].replay()
    return out
