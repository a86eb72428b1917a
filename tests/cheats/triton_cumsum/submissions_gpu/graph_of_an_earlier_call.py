"""Records one graph on the first long call and replays it for all others, which reads that call's input. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


graphs = {}


def record(x):
    """Return a graph of the whole work on `x` and the tensor that it fills."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        honest(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = honest(x)
    return graph, answer


def prefix_sum(x):
    if x.numel() < 2_000_000:
        return honest(x)
    if x.numel() not in graphs:
        graphs[x.numel()] = record(x)
    graph, answer = graphs[x.numel()]
    graph.replay()
    return answer
