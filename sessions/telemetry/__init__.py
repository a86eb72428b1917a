"""Samples of the machine, once a second, from a separate poller process that may hang without harm."""

from sessions.telemetry.samples import Gpu, GpuProcess, Sample, read_samples
from sessions.telemetry.watch import STALE_SECONDS, TelemetryWatch

__all__ = ["STALE_SECONDS", "Gpu", "GpuProcess", "Sample", "TelemetryWatch", "read_samples"]
