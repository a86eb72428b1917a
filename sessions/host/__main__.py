"""`python -m sessions.host RECORD`."""

from sessions.host.process import main

main()
