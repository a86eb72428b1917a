"""Times a function of an untrusted submission so that the time can be believed.

The submission lives in a sandboxed worker. The scorer's process owns the inputs, the places for the results, the right
answers and the clock; both share plain memory. An environment brings three things.

A *workload*: which arrays there are, what fresh inputs look like, what the right answer is::

    class Scaling:                                    # one object per kind of device
        inputs = (Block("float32", 1_000_000), Block("float32", 1))
        output = Block("float32", 1_000_000)
        tolerance = (1e-6, 0.0)                       # relative, absolute; (0.0, 0.0) is equality
        timed = Case("a million", Shapes(((1_000_000,), (1,)), (1_000_000,)), draw)
        checks = (Case("none", ...), Case("one", ...))   # edge cases; those of the timed shapes also come among the timed

        def expected(self, inputs):                   # called after the call, on arrays the worker never saw
            return inputs[0] * inputs[1]

`draw(generator)` returns the inputs: NumPy arrays from a `numpy.random.Generator`, or tensors on the device of a
`torch.Generator`; both are seeded by the operating system.

An *entry*, staged into the worker, which says what to import there::

    from environments.triton_cumsum.timing.serve import Server
    answer = Server(lambda request: request.load("solution.py").scale).answer

And a call::

    bench = HostBench(workload, slots=1)              # or DeviceBench(workload, slots=8, device="cuda:0")
    job = worker_job(HERE / "entry.py", bench, limits, mounts={"root": Mount(submission.root)})
    match time_submission(bench, job, Plan(seconds=10, call_seconds=5, open_seconds=60), chance, report):
        case Timed() as timed: ...                    # timed.calls.median in milliseconds; timed.details() for the proctor
        case NotTimed() as why: ...                   # a scoring status and a sentence
    bench.close()

What is promised, and how:

- *Fresh inputs.* Every call, warm-ups included, gets inputs drawn for it alone, and a place for the result full of rubbish.
- *Nothing is computed ahead.* On the host the worker's processes are stopped (SIGSTOP) while inputs are written. On a
  GPU the inputs are copied into shared memory when the clock already runs; what the copying costs is taken off later.
- *Finished means finished.* The clock stops when the scorer itself has read the result at random positions. Those values
  are judged too, so work that ends later is found out even if the result is right a moment after.
- *Everything is compared*, against answers computed afterwards from the scorer's own copy of the input.
- *The input is left alone.* On the host the memory is sealed against writing; on a GPU it is compared.
- *No warm-ups to detect.* Their number is drawn anew each time, they are compared, and checks of full size come among
  the timed calls.
- *What the harness costs is known.* A copy runs through the same harness in a worker of ours (before and after, when no
  code of the submission's runs; or in turn with it, while it is frozen). Both figures are in the details, and so is the
  uncertainty of what is left. How inputs' appearing is taken off stands in `cost`.
- *An unsteady machine gives no score.* With `Plan(steady=Steady(...))` calibrations that disagree, inputs that appear at
  another speed than usual, or an uncertain figure are `infrastructure`, once calibrating anew has not helped (`steadiness`).
- *Too fast is marked.* A result below a copy's time carries the flag `faster-than-a-copy`; others stand in `outcome`.

On a GPU, make `bystanders.Bystanders`: report the sentence of its `why_busy` as `infrastructure`, before making the bench and
after closing it, and hand its `why_disturbed` to `time_submission` as `watch`. `spread` has the statistics for
environments that time whole programs: `Spread`, `quietest`, and `ratio` for runs taken in turn with a yardstick.

Several calls of one interval (`slots`) are not waited for one by one, as in any loop on a GPU; on the host use one slot.
"""

from environments.triton_cumsum.timing.bench import Bench, Interval, worker_job
from environments.triton_cumsum.timing.cases import Case, Mismatch, Workload
from environments.triton_cumsum.timing.measure import check_submission, time_submission
from environments.triton_cumsum.timing.memory import Block, Layout, Shapes
from environments.triton_cumsum.timing.outcome import NotTimed, Plan, Timed
from environments.triton_cumsum.timing.spread import Spread, quietest, ratio, relative_error_of_median
from environments.triton_cumsum.timing.steadiness import Steady

__all__ = [
    "Bench",
    "Block",
    "Case",
    "Interval",
    "Layout",
    "Mismatch",
    "NotTimed",
    "Plan",
    "Shapes",
    "Spread",
    "Steady",
    "Timed",
    "Workload",
    "check_submission",
    "quietest",
    "ratio",
    "relative_error_of_median",
    "time_submission",
    "worker_job",
]
