"""Every wrapper of quorumlock.py, against real nodes.

    wrappers.py LIBRARY URL...
"""

import os
import select
import signal
import socket
import sys
import threading
import time
import weakref

import quorumlock
from quorumlock import Result

VOTING, DOWN, MASTER, REFUSED, CONNECT = 2, 3, 1, 14, 2
ACQUIRED, ATTEMPT_LOST, EXTENDED, LOST_TIME, NODE_DOWN, NODE_UP, RELEASED, GAVE_UP = 1, 2, 3, 6, 7, 8, 10, 22


def result_of(action, *arguments):
    """The result of a call that must fail."""
    try:
        action(*arguments)
    except quorumlock.Failure as failure:
        assert str(failure)
        return failure.result
    return Result.OK


def soon(condition):
    for _ in range(1000):
        if condition():
            break
        time.sleep(0.01)
    return condition()


def failures():
    assert result_of(quorumlock.Client, []) == Result.CONFIG
    assert result_of(lambda: quorumlock.Client([], restart_policy="none")) == Result.CONFIG
    dead = quorumlock.Client("redis://127.0.0.1:1")
    try:
        quorumlock.Mutex(dead, "x").try_lock()
        raise AssertionError("a lock")
    except quorumlock.Failure as failure:
        (fault,) = failure.faults
        assert failure.result == Result.UNAVAILABLE and not failure.is_permanent
        assert (fault.address, fault.phase, fault.cause, fault.number) == ("127.0.0.1:1", CONNECT, REFUSED, -1)
        assert fault.message.startswith(fault.address)
    (status,) = dead.nodes()
    assert status.state == DOWN and status.last_fault.cause == REFUSED
    assert result_of(dead.connect, 1) == Result.UNAVAILABLE


def waits(client):
    mutex, cancel = quorumlock.Mutex(client, "waits"), quorumlock.CancelHandle()
    # Too long for a number of C, which would be its lowest digits.
    assert result_of(quorumlock.Mutex(client, "waits", ttl=2**64 / 1000 + 5).try_lock) == Result.CONFIG
    assert mutex.try_lock(float("inf")).unlock()
    held = mutex.lock(cancel)
    assert (mutex.name, held.name) == ("waits", "waits")
    assert mutex.try_lock() is None and mutex.try_lock(0.001, cancel) is None
    assert mutex.try_lock_until(quorumlock.now() + 0.001, cancel) is None and not cancel.is_cancelled
    results = []
    waiting = threading.Thread(target=lambda: results.append(result_of(mutex.lock, cancel)))
    waiting.start()
    cancel.cancel()
    waiting.join()
    assert results == [Result.CANCELLED] and cancel.is_cancelled
    assert held.unlock() and held.remaining == 0
    actions = (held.unlock, lambda: held.ensure(0), held.detach, held.lost_descriptor, lambda: held.on_lost(print))
    for action in actions:
        assert result_of(action) == Result.NOT_HELD
    held.close()
    assert result_of(held.unlock) == Result.NOT_HELD
    with mutex.try_lock(5) as again:
        assert again.remaining > 0
    assert mutex.try_lock_until(quorumlock.now() + 5).unlock()


class Between:
    """The library, and what another thread does between the look-up of a function's arguments and its call."""

    def __init__(self, library):
        self.library, self.action = library, None

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            if self.action:
                action, self.action = self.action, None
                action()
            return function(*arguments)

        call.pointer = getattr(function, "pointer", None)
        return call


def closed_meanwhile(client):
    """What one thread closes while another uses it is given back afterwards, and not before."""
    mutex, cancel = quorumlock.Mutex(client, "closed"), quorumlock.CancelHandle()
    between = quorumlock._c = Between(quorumlock._c)
    actions = (
        lambda guard: guard.ensure(0),
        lambda guard: guard.extend(1),
        lambda guard: guard.unlock(),
        lambda guard: guard.lost_descriptor(),
        lambda guard: guard.on_lost(print),
        lambda guard: guard.detach(),
    )
    for action in actions:
        guard = mutex.lock()
        between.action = guard.close
        assert result_of(action, guard) == Result.NULL_POINTER
        # Given back at once, because no call was using it.
        assert between.action is None and mutex.try_lock(5).unlock()
    for part in ("remaining", "fencing_token", "slot"):
        guard = mutex.lock()
        between.action = guard.close
        assert getattr(guard, part) == 0
    guard = mutex.lock()
    between.action = guard.close
    # A text lasts as long as what it belongs to.
    assert guard.name == "closed" and guard.name == "" and guard.remaining == 0
    quorumlock._c = between.library

    held, other = mutex.lock(), quorumlock.Mutex(client, "closed")
    used = [weakref.ref(handle._as_parameter_) for handle in (other, cancel)]
    results, references = [], sys.getrefcount(cancel._as_parameter_)
    waiting = threading.Thread(target=lambda: results.append(result_of(other.lock, cancel)))
    waiting.start()
    assert soon(lambda: sys.getrefcount(cancel._as_parameter_) > references)
    other.close()
    cancel.close()
    assert result_of(other.try_lock) == Result.NULL_POINTER
    assert all(pointer() for pointer in used) and not results, "given back during a call"
    assert held.unlock()
    waiting.join()
    assert results == [Result.OK] and not any(pointer() for pointer in used)

    # An exception that is kept has the frames of its calls, and keeps no lock.
    try:
        with mutex.lock() as guard:
            guard.ensure(60)
    except quorumlock.Failure as failure:
        kept = failure
    assert kept.result == Result.LEASE_TOO_SHORT and mutex.try_lock(5).unlock()

    for _ in range(100):
        guard, begun = mutex.lock(), threading.Event()

        def look():
            begun.set()
            while guard.name:
                assert guard.remaining >= 0

        looking = threading.Thread(target=look)
        looking.start()
        begun.wait()
        guard.close()
        looking.join()
    # A text is a pointer too, for ctypes.
    for action in (lambda: quorumlock.Mutex("closed", "closed"), lambda: mutex.attach(b"closed")):
        assert " is expected, not " in message_of(TypeError, action)


def told(client, urls, events):
    other = quorumlock.Client(urls, prefix="w:")
    held = quorumlock.Mutex(other, "told").lock()
    waiting = threading.Thread(target=lambda: quorumlock.Mutex(client, "told").lock().unlock())
    waiting.start()
    time.sleep(0.3)
    assert held.unlock()
    waiting.join()
    [won] = [event for event in events if event.kind == ACQUIRED and event.name.endswith("told")]
    assert won.told >= 1 and won.position == 1 and won.attempts > won.told + won.unasked + won.challenges
    other.close()


def message_of(kind, action):
    """The message of an exception that must be raised."""
    try:
        action()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind}")


def before_loading():
    assert "quorumlock.load()" in message_of(RuntimeError, lambda: quorumlock.Client(["redis://127.0.0.1:1"]))
    missing = message_of(OSError, lambda: quorumlock.load("/nowhere/libquorumlock.so"))
    assert "/nowhere/libquorumlock.so" in missing and "cargo rustc" in missing, missing
    other = message_of(OSError, lambda: quorumlock.load("libc.so.6"))
    assert other.startswith("libc.so.6 is not the library") and "quorumlock_" in other, other
    assert "quorumlock.load()" in message_of(RuntimeError, quorumlock.version)


def refused_settings():
    """The error has the name of the setting."""
    url = "redis://127.0.0.1:1"
    for name, value in (("node_timeot", 1), ("durable_nodes", [url]), ("ttl", {}), ("spin", "1sec")):
        try:
            quorumlock.Client([url], **{name: value})
            raise AssertionError(name)
        except (quorumlock.Failure, TypeError) as failure:
            assert name in str(failure), failure


def without_tls():
    """In a build with TLS, the settings are wrong in another way."""
    for setting in ({"tls_roots_pem": "x"}, {"cacert": "/nowhere"}, {"tls_identity": ("x", "y")}):
        (name,) = setting
        try:
            quorumlock.Client(["redis://127.0.0.1:1"], **setting)
            raise AssertionError(name)
        except quorumlock.Failure as failure:
            is_named = str(failure).startswith(f"{name}: this build of the library has no TLS")
            assert is_named if failure.result == Result.UNSUPPORTED else failure.result == Result.CONFIG, failure


class Interrupted(Exception):
    pass


def signals(client):
    """A handler runs while the main thread waits. What it raises ends the wait, and otherwise the wait goes on."""
    mutex = quorumlock.Mutex(client, "signals", ttl=30)

    def interrupt(*_):
        raise Interrupted

    def kill_soon():
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()

    signal.signal(signal.SIGUSR1, interrupt)
    for wait in (
        mutex.lock,
        lambda: mutex.lock(quorumlock.CancelHandle()),
        lambda: mutex.try_lock(20),
        lambda: mutex.try_lock_until(quorumlock.now() + 20),
    ):
        with mutex.lock():
            kill_soon()
            begun = time.monotonic()
            message_of(Interrupted, wait)
            # Far less than the limits, and than the lease.
            assert time.monotonic() - begun < 10, time.monotonic() - begun
        # No call waits any more, or has it.
        assert mutex.try_lock(5).unlock()

    handled = []
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    before = signal.set_wakeup_fd(writing.fileno())
    held = mutex.lock()
    kill_soon()
    begun = time.monotonic()
    assert mutex.try_lock(1) is None and handled == [1] and time.monotonic() - begun >= 0.9
    # What the program has set before receives the signal, and is set again.
    assert reading.recv(10) == bytes([signal.SIGUSR1]) and signal.set_wakeup_fd(before) == writing.fileno()
    kill_soon()
    threading.Timer(0.5, held.unlock).start()
    assert mutex.lock().unlock() and handled == [1, 1]

    # What one handler raises costs no other signal.
    signal.signal(signal.SIGUSR1, interrupt)
    signal.signal(signal.SIGUSR2, later := lambda *_: handled.append(2))
    numbers = signal.SIGUSR1, signal.SIGUSR2
    with mutex.lock():
        threading.Timer(0.2, lambda: [os.kill(os.getpid(), number) for number in numbers]).start()
        message_of(Interrupted, mutex.lock)
        assert handled == [1, 1, 2]
    # Nor does one that arrives while they are set again.
    real = signal.signal

    def at_once(number, handler):
        real(number, handler)
        if handler is interrupt:
            os.kill(os.getpid(), number)

    with mutex.lock():
        signal.signal = at_once
        message_of(Interrupted, lambda: mutex.try_lock(0.01))
        signal.signal = real
        assert signal.getsignal(signal.SIGUSR2) is later
    signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    handled.remove(2)

    cancel = quorumlock.CancelHandle()
    with mutex.lock():
        kill_soon()
        threading.Timer(0.5, cancel.cancel).start()
        assert result_of(mutex.lock, cancel) == Result.CANCELLED and handled == [1, 1, 1]
        assert result_of(mutex.lock, cancel) == Result.CANCELLED


def credentials(url):
    def refused(provider):
        try:
            quorumlock.Mutex(quorumlock.Client([url], node_timeout=1, credentials=provider), "login").try_lock()
        except quorumlock.Failure as failure:
            assert failure.result == Result.UNAVAILABLE and "hunter2" not in str(failure)
            return str(failure)

    def fails(node):
        raise ValueError("hunter2 of " + node)

    assert "no credentials: the provider returned an error" in refused(fails)
    # The server has no password set, and says so.
    assert "the server has none set" in refused(lambda node: (None, "hunter2"))
    assert "no credentials" not in refused(lambda node: ("alice", "hunter2", 60))


def levels(client):
    request = quorumlock.Owner()
    for reentrant in (True, request):
        mutex = quorumlock.Mutex(client, "levels", reentrant=reentrant)
        outer, inner = mutex.lock(), mutex.try_lock(5)
        assert quorumlock.Mutex(client, "levels").try_lock() is None
        assert outer.unlock() and inner.remaining > 0 and inner.unlock() and inner.remaining == 0


def readers(client):
    read = quorumlock.Mutex(client, "readers", kind=quorumlock.LockKind.READ)
    write = quorumlock.Mutex(client, "readers", kind=quorumlock.LockKind.WRITE)
    guard = write.lock()
    assert read.try_lock() is None
    guard.downgrade()
    second = read.try_lock()
    assert second and write.try_lock() is None and second.unlock() and guard.unlock()
    assert result_of(read.lock().downgrade) == Result.CONFIG


def sets(client):
    mutex, single = quorumlock.Mutex(client, ["b", "a", "b"]), quorumlock.Mutex(client, "b")
    assert mutex.name == "a, b"
    with mutex.lock():
        assert single.try_lock() is None
    assert single.lock().unlock()
    assert result_of(quorumlock.Mutex(client, []).lock) == Result.CONFIG


def permits(client):
    doors = quorumlock.Mutex(client, "doors", permits=2)
    first, second = doors.lock(), doors.lock()
    assert {first.slot, second.slot} == {0, 1} and doors.try_lock() is None
    assert first.unlock() and doors.lock().unlock() and second.unlock()


def holding(client):
    mutex = quorumlock.Mutex(client, "holding", ttl=30, kind=quorumlock.LockKind.FENCED)
    first = mutex.lock()
    assert first.fencing_token > 0 and first.remaining > 20
    first.ensure(20)
    assert result_of(first.ensure, 40) == Result.LEASE_TOO_SHORT
    assert first.extend(50) and first.remaining > 40 and first.unlock()
    losses = []

    def lost():
        losses.append(1)
        raise ValueError("it must not reach the library")

    second = quorumlock.Mutex(client, "holding", ttl=0.3, kind=quorumlock.LockKind.FENCED).lock()
    assert second.fencing_token > first.fencing_token
    second.on_lost(lost)
    assert select.select([second.lost_descriptor()], [], [], 10)[0] and soon(lambda: losses == [1])
    assert result_of(second.ensure, 0) == Result.LEASE_LOST and not second.extend(1) and not second.unlock()
    watched = quorumlock.Mutex(
        client,
        "watched",
        # A busy machine may let the watchdog wait for hundreds of milliseconds.
        ttl=2,
        watchdog=True,
        watchdog_period=0.05,
        watchdog_notify_before=0.02,
        watchdog_max_extensions=1000,
        watchdog_max_duration=60,
    ).lock()
    assert watched.fencing_token == 0
    time.sleep(2.5)
    watched.ensure(0.001)
    assert watched.unlock()


def moving(client):
    mutex = quorumlock.Mutex(client, "moving", ttl=30, kind=quorumlock.LockKind.FENCED)
    guard = mutex.lock()
    number, lease = guard.fencing_token, guard.detach()
    assert (lease.key, lease.ttl, lease.fencing_token) == ("quorumlock-fence:w:moving", 30, number)
    assert lease.remaining > 20 and lease.end > time.time() + 20
    text = lease.into_text()
    assert result_of(client.attach, lease) == Result.CONSUMED
    assert result_of(quorumlock.Lease.from_text, "nonsense") == Result.CONFIG
    again = mutex.attach(quorumlock.Lease.from_text(text))
    assert again.fencing_token == number
    last = client.attach(again.detach())
    assert last.name == "moving" and last.unlock()


def ending(url):
    client, other = quorumlock.Client([url]), quorumlock.Client([url])
    held, theirs = quorumlock.Mutex(client, "ending").lock(), quorumlock.Mutex(other, "theirs").lock()
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(result_of(quorumlock.Mutex(client, "theirs").lock)))
    thread.start()
    try:
        client.shutdown(0)
        raise AssertionError("a guard exists")
    except quorumlock.Failure as failure:
        assert failure.result == Result.SHUTDOWN_INCOMPLETE and not failure.is_permanent
        assert 'still held: "ending"' in str(failure), failure
    thread.join()
    assert waiting == [Result.SHUT_DOWN]
    assert result_of(quorumlock.Mutex(client, "other").try_lock) == Result.SHUT_DOWN
    assert held.extend(20) and held.unlock()
    client.shutdown(10)
    assert theirs.unlock() and quorumlock.Mutex(other, "ending").try_lock().unlock()


def holders(client, url):
    mutex = quorumlock.Mutex(client, "holders")
    assert mutex.holder() is None
    standing = quorumlock.Mutex(client, "standing", min_hold=30)
    assert standing.lock().unlock() and standing.holder() and standing.try_lock() is None
    with mutex.lock():
        holder = mutex.holder()
        assert holder.label == "wrappers@here" and holder.message.startswith(holder.label)
        assert holder.remaining > 0 and holder.nodes
    here = quorumlock.Client([url], label=quorumlock.HERE)
    own = quorumlock.Mutex(here, "here")
    with own.lock():
        assert own.holder().label.endswith(f"/{os.getpid()}")
    here.close()


def nodes(client, count):
    assert soon(lambda: all(node.state == VOTING for node in client.nodes()))
    statuses = client.nodes()
    assert len(statuses) == count and sum(node.is_durable for node in statuses) == 1
    for node in statuses:
        assert node.counted == 0 or ", votes counted for " in node.message
        assert node.is_connected and node.quarantine == 0 and node.state_age >= 0 and node.last_fault is None
        assert node.message.startswith(node.address) and node.server and len(node.run_id) == 8
        assert node.role == MASTER and node.eviction == ""


def ignore(_):
    pass


def main(path, *urls):
    before_loading()
    quorumlock.load(path)
    major, minor, patch = map(int, quorumlock.version().split("."))
    assert quorumlock.version_number() == major * 65536 + minor * 256 + patch
    failures()
    refused_settings()
    credentials(urls[0])
    without_tls()
    events = []
    seconds = []

    def observe(event):
        events.append(event)
        raise ValueError("it must not reach the library")

    counters = quorumlock.Counters("/")
    client = quorumlock.Client(
        [*urls[:-1], urls[-1] + "?durable=true"],
        prefix="w:",
        label="wrappers@here",
        node_timeout=5,
        drift_factor=0.02,
        retry_delay=[0.001, 0.05],
        unavailable_after=2,
        max_ttl=60,
        ttl=10,
        durable=0,
        restart_policy=None,
        release_notifications=True,
        fence_retention=25 * 3600,
        place_lease=2,
        spin=0,
        observers=[observe, seconds.append],
        counters=counters,
    )
    assert len(client.connect(10)) == len(urls)
    os.environ["LOCKS_NODES"] = ",".join(urls)
    assert len(quorumlock.Client.from_env("LOCKS_").connect(10)) == len(urls)
    waits(client)
    closed_meanwhile(client)
    told(client, urls, events)
    signals(client)
    levels(client)
    readers(client)
    sets(client)
    permits(client)
    holders(client, urls[0])
    ending(urls[0])
    holding(client)
    moving(client)
    nodes(client, len(urls))
    assert "\nquorumlock_nodes 3\n" in counters.text() and ',outcome="acquired"} ' in counters.text()
    client.close()
    client.close()
    # Events of two threads may reach two observers in two orders.
    assert sorted(event.message for event in seconds) == sorted(event.message for event in events)
    kinds = {event.kind for event in events}
    assert {ACQUIRED, ATTEMPT_LOST, EXTENDED, LOST_TIME, NODE_UP, RELEASED} <= kinds, kinds
    for event in events:
        assert event.message and (event.kind != NODE_UP or len(event.addresses) == 1)
        assert event.kind != ACQUIRED or (event.attempts >= 1 and event.round_trips >= 1 and event.waited > 0)
        assert not event.position or event.kind == ACQUIRED
        assert event.kind != ATTEMPT_LOST or event.granted + event.refused > 0
        assert event.kind != EXTENDED or event.ttl > 0
        assert not event.is_automatic or event.kind == EXTENDED
        assert event.kind != NODE_DOWN or len(event.faults) == 1
        assert event.severity and (event.reason != 0) == (event.kind == GAVE_UP)
        assert event.kind != RELEASED or (event.held > 0 and not event.has_waited)
        assert not event.is_freed or (event.name and event.remaining == 0 and event.policy == "")
    # The module goes before what it has, when the interpreter ends.
    quorumlock.left = quorumlock.Mutex(quorumlock.Client(urls, observers=[ignore]), "left").lock()
    print("every wrapper works")


main(*sys.argv[1:])
