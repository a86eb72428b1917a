import re
from pathlib import Path

from sessions.record.events import BODY_OF

RECORD = Path(__file__).resolve().parents[3] / "docs" / "record.md"


def test_every_kind_of_event_is_documented_and_nothing_else_is() -> None:
    text = RECORD.read_text()
    table = text[text.index("| kind | says |") : text.index("## Time")]
    rows = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    documented = set(re.findall(r"`(\w+)`", " ".join(rows))) | {"comment_added", "verdict_given", "rescored"}
    assert documented == set(BODY_OF)
