"""Writes a trace of lookups of values of many sizes, as `kvssd replay` takes it. A model, and no recording.

    python sized_trace.py 1200000 160000 2400 > sized.csv
    kvssd replay sized.csv --pace trace --scale 1/32 --cache lru --design tessera --design block

The arguments: lookups, keys, lookups a second, and the smallest and largest value in bytes [4096 163840]. Low keys are asked for more often than high
ones, each key has one size, and arrivals are a Poisson process. A value that is not there is stored.
"""

from __future__ import annotations

import random
import sys


def write(lookups: int, keys: int, rate_per_s: float, bytes_min: int = 4096, bytes_max: int = 163_840) -> None:
    """Prints the trace."""
    chance = random.Random(1)
    sizes = [chance.randint(bytes_min, bytes_max) for _ in range(keys)]
    at_us = 0.0
    print("timestamp_us,key,value_size")
    for _ in range(lookups):
        at_us += chance.expovariate(rate_per_s) * 1e6
        key = int(keys * chance.random() ** 3)
        print(f"{at_us:.0f},{key},{sizes[key]}")


if __name__ == "__main__":
    lookups, keys, rate_per_s, *sizes = (int(argument) for argument in sys.argv[1:])
    write(lookups, keys, rate_per_s, *sizes)
