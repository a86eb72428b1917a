"""What reviewers add to a record: a second chained log, so that a closed record is never written again."""

from __future__ import annotations

import os

from sessions.record.clock import Clock, SystemClock
from sessions.record.events import REVIEW_KINDS, Body, Event, encode
from sessions.record.log import FIRST_PREV, iter_chain, lines_of
from sessions.record.store import Record


def read_reviews(record: Record) -> tuple[Event, ...]:
    """Return every review event, oldest first; a torn last line is left out.

    Raises:
        LogDamaged: the chain does not hold.
    """
    if not record.review_log.exists():
        return ()
    whole, _ = lines_of(record.review_log.read_bytes())
    return tuple(event for event, _ in iter_chain(whole))


def add_review(record: Record, body: Body, by: str, *, clock: Clock | None = None) -> Event:
    """Append one review event, on disk before this returns.

    Raises:
        LogDamaged: the review log was changed by hand; nothing is added to it.
    """
    if not isinstance(body, REVIEW_KINDS):
        raise TypeError(f"{type(body).__name__} does not belong in a review")
    data = record.review_log.read_bytes() if record.review_log.exists() else b""
    whole, torn = lines_of(data)
    digests = [digest for _, digest in iter_chain(whole)]
    now = (clock or SystemClock()).now()
    event = Event(len(whole), now.at, now.boot_id, now.boottime, 0, [FIRST_PREV, *digests][-1], by, body)
    descriptor = os.open(record.review_log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, len(data) - len(torn))
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, encode(event) + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return event
