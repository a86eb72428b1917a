from sessions.record.clock import Instant, ManualClock, SystemClock, parse_utc, utc_label


def test_differences_within_one_boot_follow_the_boot_clock_whatever_the_wall_says() -> None:
    clock = ManualClock()
    before = clock.now()
    clock.advance(90)
    clock.step_wall(-3 * 3600)
    assert clock.now().milliseconds_since(before) == 90_000


def test_differences_across_a_boot_follow_the_wall() -> None:
    clock = ManualClock()
    before = clock.now()
    clock.reboot(seconds_away=120)
    assert clock.now().milliseconds_since(before) == 120_000


def test_a_wall_that_went_back_across_a_boot_counts_as_nothing() -> None:
    clock = ManualClock()
    before = clock.now()
    clock.reboot(seconds_away=-500)
    assert clock.now().milliseconds_since(before) == 0


def test_the_system_clock_moves_forward() -> None:
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert isinstance(first, Instant)
    assert second.boottime >= first.boottime
    assert first.boot_id == second.boot_id


def test_labels_survive_a_round_trip() -> None:
    label = "2026-03-04T05:06:07.089Z"
    assert utc_label(parse_utc(label)) == label
