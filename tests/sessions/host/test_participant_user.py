"""Isolation `user`, as root: the participant's shells and commands run as another account."""

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from sessions.record.events import Isolation, ParticipantKind
from tests.sessions.live import live

ACCOUNT = "nobody"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands as another account")


def test_a_participant_with_an_account_of_their_own_works_and_reaches_nothing_else(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    changes = {
        "isolation": Isolation.USER,
        "participant_user": ACCOUNT,
        "participant_kind": ParticipantKind.AGENT,
    }
    with live(tmp_path, **changes) as session:
        assert session.ask("status")["isolation"] == "user"
        session.begin()
        done = session.ask(
            "exec", command="id -un; echo mine > made; cat made; ls " + str(session.record.folder)
        )
        assert done["output"].splitlines()[:2] == [ACCOUNT, "mine"]
        assert "ermission denied" in done["output"]
        assert (session.work / "made").stat().st_uid == pwd.getpwnam(ACCOUNT).pw_uid
        session.ask("score")
        proctor = session.record.proctor_socket
        tried = subprocess.run(
            ["setpriv", f"--reuid={ACCOUNT}", "--clear-groups", "cat", str(proctor)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "ermission denied" in tried.stderr
        socket = session.record.participant_socket
        assert socket.stat().st_uid == pwd.getpwnam(ACCOUNT).pw_uid
