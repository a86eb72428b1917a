"""One attempt, from start to verified record.

The truth      events, log, log_copy, state, clock: what can happen, the chained log, the fold, time
The record     store, closing, signing, verify, bundles, reviewing, rescoring; summary, visibility: readers of state
The host       supervisor, host, server, dispatch, engine, wiring: the one process that owns a live session
  it scores    score_queue, scoring; snapshotting over snapshots/; gateway/ to a model
  it watches   telemetry/, activity, watching; shells over recording/
  it starts    participants, isolation, commands: what runs for the participant, and what that may see
The clients    protocol, client, follow, hosting: how everybody else reaches a host
The beginning  opening, surveying
"""
