"""Leaves the output as it is, hoping for an earlier answer. Seen: kernel competitions (allocator reuse). Expected: invalid."""

def prefix_sum(x, out):
    return out
