"""Lifts its own limits through the control groups' files or setrlimit. Seen: privileged containers. Expected: harmless."""

import contextlib
import resource
from pathlib import Path


def predict(xs):
    for file in Path("/sys/fs").rglob("cgroup.procs"):
        with contextlib.suppress(OSError):
            file.write_text("0")
            print("GOT out of the control group through", file)
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print("GOT rid of a limit")
    return [14.0 for _ in xs]
