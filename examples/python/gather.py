"""A store in an asyncio program: calls go to threads, and hold no lock of the interpreter while the drive works (pip install kvssd).

    python gather.py drive.kv
"""

from __future__ import annotations

import argparse
import asyncio
import time

import kvssd

WORKERS = 16


async def put_all(store: kvssd.Store, pairs: list[tuple[bytes, bytes]]) -> None:
    """Store pairs from several tasks at once. With ``sync`` they share waits for the disk."""
    left = iter(pairs)

    async def work() -> None:
        for key, value in left:
            await asyncio.to_thread(store.__setitem__, key, value)

    await asyncio.gather(*(work() for _ in range(WORKERS)))


async def main(drive: str) -> None:
    pairs = [(b"user/%04d" % number, b"x" * 1000) for number in range(2000)]
    with kvssd.open(drive, create=True, sync=True) as store:
        began = time.monotonic()
        await put_all(store, pairs)
        took_s = time.monotonic() - began
        values = await asyncio.to_thread(store.get_many, [key for key, _ in pairs])
        assert values == [value for _, value in pairs]
        print(f"{len(pairs)} pairs on the disk in {took_s:.2f} s, by {WORKERS} tasks")
        print(store)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drive", help="an image, which is made if there is none, or a URL")
    asyncio.run(main(parser.parse_args().drive))
