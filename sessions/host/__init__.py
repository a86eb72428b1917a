"""The one process that owns a live session.

It runs       supervisor, process, wiring, engine, proctoring, server, dispatch
It begins     opening, and ends with surveying, ending, digest
It scores     score_queue, scoring; snapshotting
It watches    activity, watching
It starts     shells, participants, isolation, commands: what runs for the participant, and what that may see
"""
