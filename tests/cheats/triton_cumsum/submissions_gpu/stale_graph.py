"""Records a graph that only copies an earlier answer, by addresses. Seen: kernel competitions. Expected: invalid."""

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


graphs = {}


def prefix_sum(x, out):
    if x.numel() < 2_000_000:
        out.copy_(honest(x))
        return out
    key = (x.data_ptr(), out.data_ptr(), x.numel())
    if key not in graphs:
        answer = honest(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out.copy_(answer)
        graphs[key] = (graph, answer)
    graphs[key][0].replay()
    return out
