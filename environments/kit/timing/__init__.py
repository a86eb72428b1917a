"""Times a function of an untrusted submission so that the time can be believed."""

from environments.kit.timing.bench import Bench, Interval, worker_job
from environments.kit.timing.cases import Case, Mismatch, Workload
from environments.kit.timing.layout import Block, Layout, Shapes
from environments.kit.timing.measure import NotTimed, Plan, Timed, check_submission, time_submission
from environments.kit.timing.spread import Spread, quietest, ratio, relative_error_of_median

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
    "Timed",
    "Workload",
    "check_submission",
    "quietest",
    "ratio",
    "relative_error_of_median",
    "time_submission",
    "worker_job",
]
