"""Worker entry: imports the participant's solution.py and serves calls of its prefix_sum."""

from environments.triton_cumsum.timing.serve import Server


def _load(request):  # type: ignore[no-untyped-def]
    return request.load("solution.py").prefix_sum


answer = Server(_load).answer
