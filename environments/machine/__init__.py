"""The ground everything stands on: this machine's folders, processes, sandbox, cards and hardware. Imports nothing of ours."""
