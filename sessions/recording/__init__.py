"""Recordings of terminals: made by a process of their own, kept as raw bytes, replayed safely.

| who | takes |
| --- | --- |
| the host | `handle.Recorders`: start, adopt, poll for events, stop; `foreign.ForeignWatch` |
| the participant's terminal | `attach.run(socket)` |
| replay | `player.Player`, `player.screen_at`, `screen.Screen`; `keyframes.start_building` |
| verify and bundle | `verifying.examine`, `reader.evidence_of` |
| export | `asciicast.export` |

Nothing is imported here, so that each pays for its own part only.
"""
