"""Numbers that the native part has no room for."""

from __future__ import annotations

from kvssd._kvssd import InvalidError

#: The largest numbers of 32 and of 64 bits.
U32_MAX, U64_MAX = (1 << 32) - 1, (1 << 64) - 1


def beyond(**numbers: tuple[int | None, int, int]) -> InvalidError:
    """Which of these numbers, each with its least and its most, cannot be."""
    for name, (number, least, most) in numbers.items():
        if number is not None and not least <= number <= most:
            return InvalidError(f"{name} is a number from {least} to {most}, not {number}")
    return InvalidError(f"one of these numbers is too large: {', '.join(numbers)}")
