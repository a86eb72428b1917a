"""Runs untrusted submission code in its own sandboxed process and moves plain bytes, never objects.

An environment brings a small trusted script, the *entry*, which runs in the sandbox and loads the participant's code::

    # environments/restricted_mlm/capture.py: runs in the worker
    def answer(request):
        model = request.load("model.py").get_trained_model()   # participant's code, from here on trust nothing
        request.progress("capturing the model", None)
        description, content = pack_array(model(...))           # from environments.worker.messages
        return {"logits": description}, {"logits": content}     # JSON, named bytes

and the scorer runs it and checks what comes back::

    job = WorkerJob(
        entry=Path(__file__).with_name("capture.py"),
        modules=(Path(__file__).with_name("rules.py"),),        # other trusted files that the entry imports
        mounts={"root": Mount(submission.root), "public": Mount(submission.assets.public)},
        limits=WorkerLimits.of(profile.limits, threads=1),
        body={"seed": 1}, blobs={"ids": ids.tobytes()},
    )
    match run_untrusted(job, report):
        case Answered(body=body, blobs=blobs):
            logits = unpack_array(body["logits"], blobs["logits"], dtype="float32", shape=(8, 128, 4096))
        case Failed() as failed:
            return ScoreReport.rejected(failed.status, failed.message, log=failed.log)

What an entry may count on: `request.body`, `request.blobs`, `request.places["root"]` (a Path, one per mount), `request.load(file)`,
`request.progress(stage, fraction)`, `request.descriptors`. It imports the standard library, whatever is installed beside the engine (torch,
numpy...), `environments.worker.messages`, and the files in `modules` under the dotted names they have in the engine's own
package (`environments.restricted_mlm.rules`) or, from a plug-in, under their bare stem. Nothing else of ours exists in there: no contract, no registry, no protected assets.
An exception that leaves `answer` becomes `Failed(CRASHED)` with its type, text and `model.py:41`.

What the engine promises: own process tree (nothing survives), no network, scrubbed variables, read-only mounts, private
/tmp and HOME, limits on memory, processes, time, files and output. What was really in force stands in
`outcome.confinement`. A worker that cannot start raises `WorkerUnavailable`: infrastructure, never a score.

For several questions to one living worker (timing loops, batches) use `open_worker`: `ask` returns the same outcomes, or
`post` and `collect` it in two steps; after a `Failed` the worker is gone. `freeze` and `thaw` stop and resume it in between.
"""

from environments.worker.jobs import (
    Answered,
    Confinement,
    Failed,
    FailureKind,
    Level,
    Mount,
    WorkerJob,
    WorkerLimits,
    WorkerOutcome,
    WorkerUnavailable,
)
from environments.worker.messages import ArrayRefused, pack_array, unpack_array
from environments.worker.run import open_worker, run_untrusted

__all__ = [
    "Answered",
    "ArrayRefused",
    "Confinement",
    "Failed",
    "FailureKind",
    "Level",
    "Mount",
    "WorkerJob",
    "WorkerLimits",
    "WorkerOutcome",
    "WorkerUnavailable",
    "open_worker",
    "pack_array",
    "run_untrusted",
    "unpack_array",
]
