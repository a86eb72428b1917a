"""A thread watches the shared input and has the answer before it is asked. Seen: a consequence of shared memory. Expected: invalid."""

import threading

import torch


def honest(x):
    positive = (x > 0).to(torch.int32)
    odd = (torch.cumsum(positive, 0, dtype=torch.int32) - positive) & 1
    return torch.cumsum(x * odd, 0, dtype=torch.int32)


ready = {}
side = torch.cuda.Stream()


def watch(inputs):
    with torch.cuda.stream(side):
        while True:
            for x in inputs:
                key = tuple(x[-8:].tolist())
                if ready.get(x.data_ptr(), (None,))[0] != key:
                    answer = honest(x)
                    side.synchronize()
                    ready[x.data_ptr()] = (key, answer)


def prefix_sum(x):
    if x.numel() < 2_000_000:
        return honest(x)
    if "inputs" not in ready:
        ready["inputs"] = []
    if x.data_ptr() not in {known.data_ptr() for known in ready["inputs"]}:
        ready["inputs"].append(x)
        if len(ready["inputs"]) == 1:
            threading.Thread(target=watch, args=(ready["inputs"],), daemon=True).start()
        return honest(x)
    key, answer = ready.get(x.data_ptr(), (None, None))
    if key == tuple(x[-8:].tolist()):
        return answer
    return torch.zeros_like(x)
