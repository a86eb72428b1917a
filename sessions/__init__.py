"""One attempt, from start to verified record. Each folder imports only from those below it.

audit        verifies, bundles, judges and scores again what a session left
host         the one process that owns a live session
clients      how everybody else reaches a host
gateway, recording, snapshots, telemetry
             the way to a model; shells on tape; the working tree in git; what the machine does
record       the truth: events, the log that chains them, state and clock folded from it, where it lies
"""
