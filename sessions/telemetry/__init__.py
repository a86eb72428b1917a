"""Samples of the machine, once a second, from a separate poller process that may hang without harm."""

from sessions.telemetry.samples import Gpu, GpuProcess, Sample, read_samples
from sessions.telemetry.watch import TelemetryWatch

__all__ = ["Gpu", "GpuProcess", "Sample", "TelemetryWatch", "read_samples"]
