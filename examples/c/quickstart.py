"""The same as quickstart.c, from Python, with quorumlock.py.

    python3 examples/c/quickstart.py target/release/libquorumlock.so redis://127.0.0.1:6379 ...

The exit code is 0 when the lock was ours to the end.
"""

import sys

import quorumlock


def main(path, *urls):
    quorumlock.load(path)
    print("quorumlock", quorumlock.version())
    try:
        client = quorumlock.Client(urls, node_timeout=1)
        order = quorumlock.Mutex(client, "orders/42", ttl=5)
        guard = order.try_lock(timeout=1)
        if guard is None:
            print("another client had it for the whole second")
            return 1
        guard.ensure(2)
        print("ours for", guard.remaining, "s")
        if not guard.unlock():
            print("it took too long: another client may have had it too")
            return 1
        print("released in time")
        return 0
    except quorumlock.Failure as failure:
        print(failure, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
