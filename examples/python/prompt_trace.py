"""Writes a trace of prompts as `kvssd replay` takes it: conversations that grow, behind prefixes that many share. A model, and no recording.

    python prompt_trace.py > prompts.jsonl
    kvssd replay prompts.jsonl --value-bytes 65536 --pace trace --cache s3-fifo --design tessera

Each line is a request in Mooncake's format: when, and the blocks of its prompt. A conversation begins with one of twenty prefixes of 4 to 40 blocks
(Zipf's law); six of ten end with their first request, the others have five on average, a minute apart. Each adds 1 to 8 blocks.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import count

HOURS = 2
CONVERSATIONS = 12_000


def requests(seed: int) -> list[tuple[float, list[int]]]:
    """Times in milliseconds, and the blocks of each prompt."""
    chance = random.Random(seed)
    block = count()
    prefixes = [[next(block) for _ in range(chance.randint(4, 40))] for _ in range(20)]
    weights = [1 / rank for rank in range(1, len(prefixes) + 1)]
    found = []
    for _ in range(CONVERSATIONS):
        at = chance.uniform(0, HOURS * 3_600_000)
        blocks = list(chance.choices(prefixes, weights)[0])
        turns = 1 if chance.random() < 0.6 else 2 + int(chance.expovariate(1 / 3))
        for _ in range(turns):
            blocks += [next(block) for _ in range(chance.randint(1, 8))]
            found.append((at, list(blocks)))
            at += chance.expovariate(1 / 60_000)
    return sorted(found)


if __name__ == "__main__":
    for at, blocks in requests(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        print(json.dumps({"timestamp": int(at), "hash_ids": blocks}))
