"""redis-py's `Lock`: see rust/src/lib.rs. It knows one node."""

import sys
import threading
import time

import redis

WARM_UP = 50
TTL = 10


def rate(threads, seconds, client):
    times = []

    def work(name):
        lock = client.lock(name, timeout=TTL)
        mine = []
        for _ in range(WARM_UP):
            lock.acquire()
            lock.release()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter()
            lock.acquire()
            lock.release()
            mine.append(time.perf_counter() - begin)
        times.extend(mine)

    all_threads = [threading.Thread(target=work, args=(f"compare/{i}",)) for i in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()
    times.sort()
    print(times[len(times) // 2] * 1e6, len(times) / seconds)


def turns(client):
    lock = client.lock("compare", timeout=TTL)
    for line in sys.stdin:
        if line == "lock\n":
            lock.acquire()
            print(time.time_ns(), flush=True)
        else:
            print(time.time_ns(), flush=True)
            lock.release()


if sys.argv[1] == "rate":
    rate(int(sys.argv[2]), float(sys.argv[3]), redis.Redis.from_url(sys.argv[4]))
else:
    turns(redis.Redis.from_url(sys.argv[2]))
