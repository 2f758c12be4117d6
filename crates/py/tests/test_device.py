"""A simulated drive that another simulator asks."""

from __future__ import annotations

from collections.abc import Callable

import kvssd
import pytest

SMALL = "1/512"


def test_commands_say_when_they_are_done() -> None:
    device = kvssd.Device("tessera", scale=SMALL)
    stored = device.store(1000, b"key", 60_000)
    assert stored.is_done and stored.done_ns > 1000 and stored.value_bytes == 60_000
    found = device.retrieve(stored.done_ns, b"key")
    assert found.is_done and found.done_ns > stored.done_ns and found.value_bytes == 60_000
    part = device.retrieve(found.done_ns, b"key", offset_bytes=10, length_bytes=100)
    assert part.done_ns - found.done_ns < found.done_ns - stored.done_ns and part.value_bytes == 60_000
    # Two at a time take less than one behind the other.
    one, two = device.exist(part.done_ns, b"key"), device.exist(part.done_ns, b"none")
    assert one.is_done and not two.is_done
    assert device.delete(two.done_ns, b"key").is_done and not device.retrieve(10**9, b"key").is_done


def test_a_drive_that_was_aged_once_is_forked_and_the_same_commands_get_the_same_answers() -> None:
    device = kvssd.Device(scale=SMALL)
    now_ns = 0
    for number in range(20_000):
        now_ns = device.store(now_ns, b"%d" % (number * 7919 % 4000), 40_000).done_ns
    assert device.stats()["erases"] > 0
    forks = [device.fork(), device.fork()]
    answers = [[fork.store(now_ns, b"%d" % number, 40_000) for number in range(500)] for fork in forks]
    assert answers[0] == answers[1] and forks[0].stats() == forks[1].stats()
    assert device.stats()["now_ns"] <= now_ns and device.stats() != forks[0].stats()


def test_a_full_drive_says_so_and_goes_on() -> None:
    device = kvssd.Device(scale=SMALL)
    numbers = range(10_000)
    last = next(number for number in numbers if not device.store(0, b"%d" % number, 200_000).is_done)
    assert 500 < last and device.delete(0, b"0").is_done
    assert device.stats()["stored_bytes"] > 200_000 * last


def test_what_cannot_be_is_said_in_one_line() -> None:
    device = kvssd.Device(scale=SMALL, set={"nand.erase_ns": 1000, "design.grain_bytes": 128})
    device.exist(10, b"key")
    for scale in ("1/0", "half", "1/2/4"):
        with pytest.raises(ValueError, match=f"scale '{scale}': a number or a fraction above 0"):
            kvssd.Device(scale=scale)
    for factor in (0, float("inf"), float("nan")):
        with pytest.raises(kvssd.ExperimentError, match="a scale of .*: it must be above 0"):
            kvssd.Device(scale=factor)
    with pytest.raises(kvssd.InvalidError, match="order of time"):
        device.exist(9, b"key")
    with pytest.raises(kvssd.InvalidError, match="1 to 255"):
        device.store(10, b"", 1)
    with pytest.raises(kvssd.InvalidError):
        device.store(10, b"key", 1 << 30)
    calls: list[Callable[[], object]] = [
        lambda: device.store(-1, b"key", 1),
        lambda: device.retrieve(1 << 64, b"key"),
        lambda: device.delete(-1, b"key"),
        lambda: device.exist(-1, b"key"),
    ]
    for call in calls:
        with pytest.raises(kvssd.InvalidError, match="at_ns is a number from 0 to 18446744073709551615, not"):
            call()
    with pytest.raises(kvssd.InvalidError, match="value_bytes is a number from 0 to 2097152, not 1099511627776"):
        device.store(10, b"key", 1 << 40)
    with pytest.raises(kvssd.InvalidError, match="length_bytes is a number from 0 to 4294967295, not -1"):
        device.retrieve(10, b"key", length_bytes=-1)
    for wrong in ({"design": "nothing"}, {"profile": "nothing"}, {"scale": 0}, {"set": {"nand.nothing": 1}}):
        with pytest.raises(kvssd.Error):
            kvssd.Device(**wrong)
