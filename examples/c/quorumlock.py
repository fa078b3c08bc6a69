"""quorumlock from Python, with nothing but ctypes. All of quorumlock.h is here.

    import quorumlock

    quorumlock.load()
    client = quorumlock.Client(["redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"])
    order = quorumlock.Mutex(client, "orders/42", ttl=10)
    with order.lock() as guard:
        guard.ensure(2)  # before every step that must not be done twice

Times are seconds, as numbers with or without a fraction; what is sent is rounded down to milliseconds. `None` from
`try_lock` says that another client has the lock. What could not be done raises `Failure`. What a call means, and which
results it gives, is said in quorumlock.h at the function that it calls.

A call lets other Python threads run while it waits. A signal that comes while the main thread waits for a lock runs its
handler at once; what that raises, such as `KeyboardInterrupt`, ends the wait. A callback may run on a thread of the
library; what it raises is dropped. A guard releases its lock when it is closed, at the end of its `with`, or when it is
collected.
"""

import contextlib
import ctypes
import enum
import os
import signal
import socket
import threading
import time
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass


class Result(enum.IntEnum):
    """What came of a call. From 100 on, it could not be done."""

    OK = 0
    HELD = 1
    EXPIRED = 2
    LOST = 3
    NOT_HELD = 4
    STILL_HELD = 5
    CONFIG = 100
    UNAVAILABLE = 101
    LEASE_LOST = 102
    CANCELLED = 103
    ENTROPY = 104
    FORKED = 105
    EXTENSION_FAILED = 106
    LEASE_TOO_SHORT = 107
    SHUT_DOWN = 108
    SHUTDOWN_INCOMPLETE = 109
    NULL_POINTER = 200
    NOT_UTF8 = 201
    TOO_LONG = 202
    BUSY = 203
    CONSUMED = 204
    UNSUPPORTED = 205
    INVALID_ARGUMENT = 206
    PANIC = 300


class LockKind(enum.IntEnum):
    """The kind of a lock: of one name, plain, fenced and read-write locks are three different locks."""

    PLAIN = 0
    FENCED = 1
    READ = 2
    WRITE = 3
    FENCED_WRITE = 4


class _Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.data, self.length).decode()


_HANDLE, _OUT = c_void_p, POINTER(c_void_p)
_OBSERVER = CFUNCTYPE(None, c_void_p, c_void_p)
_PROVIDER = CFUNCTYPE(c_int, c_void_p, _Text, c_void_p)
_CALLBACK = CFUNCTYPE(None, c_void_p)
_WRITE = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)

# What each function gives and takes. Without that, ctypes takes pointers for 32-bit numbers.
_FUNCTIONS = {
    "quorumlock_version": (_Text,),
    "quorumlock_version_number": (c_uint32,),
    "quorumlock_now_ms": (c_uint64,),
    "quorumlock_result_text": (_Text, c_int),
    "quorumlock_error_free": (None, _HANDLE),
    "quorumlock_error_result": (c_int, _HANDLE),
    "quorumlock_error_message": (_Text, _HANDLE),
    "quorumlock_error_is_permanent": (c_int, _HANDLE),
    "quorumlock_error_fault_count": (c_size_t, _HANDLE),
    "quorumlock_error_fault": (_HANDLE, _HANDLE, c_size_t),
    "quorumlock_fault_address": (_Text, _HANDLE),
    "quorumlock_fault_phase": (c_int, _HANDLE),
    "quorumlock_fault_cause": (c_int, _HANDLE),
    "quorumlock_fault_number": (c_int64, _HANDLE),
    "quorumlock_fault_message": (_Text, _HANDLE),
    "quorumlock_config_new": (_HANDLE,),
    "quorumlock_config_from_env": (c_int, c_char_p, c_size_t, _OUT, _OUT),
    "quorumlock_config_free": (None, _HANDLE),
    "quorumlock_config_add_node": (c_int, _HANDLE, c_char_p, c_size_t),
    "quorumlock_config_set": (c_int, _HANDLE, c_char_p, c_size_t, c_char_p, c_size_t, _OUT),
    "quorumlock_config_set_label_here": (c_int, _HANDLE),
    "quorumlock_config_set_tls_roots_pem": (c_int, _HANDLE, c_char_p, c_size_t),
    "quorumlock_config_set_tls_identity_pem": (c_int, _HANDLE, c_char_p, c_size_t, c_char_p, c_size_t),
    "quorumlock_login_set": (c_int, _HANDLE, c_char_p, c_size_t, c_char_p, c_size_t, c_uint64),
    "quorumlock_config_set_provider": (c_int, _HANDLE, _PROVIDER, c_void_p, _CALLBACK),
    "quorumlock_config_add_observer": (c_int, _HANDLE, _OBSERVER, c_void_p, _CALLBACK),
    "quorumlock_counters_new": (_HANDLE, c_int),
    "quorumlock_counters_attach": (c_int, _HANDLE, _HANDLE),
    "quorumlock_counters_text": (c_int, _HANDLE, _WRITE, c_void_p),
    "quorumlock_counters_free": (None, _HANDLE),
    "quorumlock_client_new": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_client_flush_releases": (c_int, _HANDLE, c_uint64, _OUT),
    "quorumlock_client_shutdown": (c_int, _HANDLE, c_uint64, _OUT),
    "quorumlock_client_free": (None, _HANDLE),
    "quorumlock_client_attach": (c_int, _HANDLE, _HANDLE, _OUT, _OUT),
    "quorumlock_client_connect": (c_int, _HANDLE, c_uint64, _OUT, _OUT),
    "quorumlock_client_nodes": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_client_mutex": (c_int, _HANDLE, c_char_p, c_size_t, c_int, _OUT),
    "quorumlock_client_mutex_set": (c_int, _HANDLE, POINTER(_Text), c_size_t, _OUT),
    "quorumlock_client_semaphore": (c_int, _HANDLE, c_char_p, c_size_t, c_size_t, _OUT),
    "quorumlock_mutex_free": (None, _HANDLE),
    "quorumlock_mutex_name": (_Text, _HANDLE),
    "quorumlock_mutex_set_ttl_ms": (c_int, _HANDLE, c_uint64),
    "quorumlock_mutex_set_min_hold_ms": (c_int, _HANDLE, c_uint64),
    "quorumlock_mutex_set_watchdog": (c_int, _HANDLE, c_int),
    "quorumlock_mutex_set_watchdog_period_ms": (c_int, _HANDLE, c_uint64),
    "quorumlock_mutex_set_watchdog_notify_before_ms": (c_int, _HANDLE, c_uint64),
    "quorumlock_mutex_set_watchdog_max_extensions": (c_int, _HANDLE, c_uint32),
    "quorumlock_mutex_set_watchdog_max_duration_ms": (c_int, _HANDLE, c_uint64),
    "quorumlock_mutex_set_fair": (c_int, _HANDLE, c_int),
    "quorumlock_mutex_set_reentrant": (c_int, _HANDLE, _HANDLE),
    "quorumlock_owner_new": (_HANDLE,),
    "quorumlock_owner_free": (None, _HANDLE),
    "quorumlock_mutex_lock": (c_int, _HANDLE, c_int64, _HANDLE, _OUT, _OUT),
    "quorumlock_mutex_try_lock": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_mutex_lock_deadline": (c_int, _HANDLE, c_uint64, _HANDLE, _OUT, _OUT),
    "quorumlock_mutex_attach": (c_int, _HANDLE, _HANDLE, _OUT, _OUT),
    "quorumlock_mutex_holder": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_holder_free": (None, _HANDLE),
    "quorumlock_holder_message": (_Text, _HANDLE),
    "quorumlock_holder_label": (_Text, _HANDLE),
    "quorumlock_holder_remaining_ms": (c_uint64, _HANDLE),
    "quorumlock_holder_node_count": (c_size_t, _HANDLE),
    "quorumlock_holder_node": (_Text, _HANDLE, c_size_t),
    "quorumlock_cancel_handle_new": (_HANDLE,),
    "quorumlock_cancel_handle_free": (None, _HANDLE),
    "quorumlock_cancel_handle_cancel": (c_int, _HANDLE),
    "quorumlock_cancel_handle_is_cancelled": (c_int, _HANDLE),
    "quorumlock_guard_free": (None, _HANDLE),
    "quorumlock_guard_name": (_Text, _HANDLE),
    "quorumlock_guard_remaining_ms": (c_uint64, _HANDLE),
    "quorumlock_guard_ensure": (c_int, _HANDLE, c_uint64, _OUT),
    "quorumlock_guard_fencing_token": (c_uint64, _HANDLE),
    "quorumlock_guard_slot": (c_uint64, _HANDLE),
    "quorumlock_guard_unlock": (c_int, _HANDLE, _OUT),
    "quorumlock_guard_downgrade": (c_int, _HANDLE, _OUT),
    "quorumlock_guard_extend": (c_int, _HANDLE, c_uint64, _OUT),
    "quorumlock_guard_lost_fd": (c_int, _HANDLE, POINTER(c_int), _OUT),
    "quorumlock_guard_on_lost": (c_int, _HANDLE, _CALLBACK, c_void_p, _CALLBACK, _OUT),
    "quorumlock_guard_detach": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_lease_free": (None, _HANDLE),
    "quorumlock_lease_key": (_Text, _HANDLE),
    "quorumlock_lease_ttl_ms": (c_uint64, _HANDLE),
    "quorumlock_lease_fencing_token": (c_uint64, _HANDLE),
    "quorumlock_lease_end_unix_ms": (c_uint64, _HANDLE),
    "quorumlock_lease_remaining_ms": (c_uint64, _HANDLE),
    "quorumlock_lease_into_text": (c_int, _HANDLE, _OUT, _OUT),
    "quorumlock_lease_from_text": (c_int, c_char_p, c_size_t, _OUT, _OUT),
    "quorumlock_secret_text": (_Text, _HANDLE),
    "quorumlock_secret_free": (None, _HANDLE),
    "quorumlock_nodes_free": (None, _HANDLE),
    "quorumlock_nodes_count": (c_size_t, _HANDLE),
    "quorumlock_nodes_state": (c_int, _HANDLE, c_size_t),
    "quorumlock_nodes_message": (_Text, _HANDLE, c_size_t),
    "quorumlock_nodes_address": (_Text, _HANDLE, c_size_t),
    "quorumlock_nodes_state_age_ms": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_quarantine_ms": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_counted_ms": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_is_connected": (c_int, _HANDLE, c_size_t),
    "quorumlock_nodes_is_durable": (c_int, _HANDLE, c_size_t),
    "quorumlock_nodes_server": (_Text, _HANDLE, c_size_t),
    "quorumlock_nodes_run_id": (_Text, _HANDLE, c_size_t),
    "quorumlock_nodes_role": (c_int, _HANDLE, c_size_t),
    "quorumlock_nodes_eviction": (_Text, _HANDLE, c_size_t),
    "quorumlock_nodes_last_fault": (_HANDLE, _HANDLE, c_size_t),
    "quorumlock_nodes_latency_count": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_latency_p50_us": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_latency_p99_us": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_latency_max_us": (c_uint64, _HANDLE, c_size_t),
    "quorumlock_nodes_fault_kinds": (c_size_t, _HANDLE, c_size_t),
    "quorumlock_nodes_fault": (_HANDLE, _HANDLE, c_size_t, c_size_t),
    "quorumlock_nodes_fault_count": (c_uint64, _HANDLE, c_size_t, c_size_t),
    "quorumlock_event_kind": (c_int, _HANDLE),
    "quorumlock_event_code": (_Text, _HANDLE),
    "quorumlock_event_message": (_Text, _HANDLE),
    "quorumlock_event_name": (_Text, _HANDLE),
    "quorumlock_event_address_count": (c_size_t, _HANDLE),
    "quorumlock_event_address": (_Text, _HANDLE, c_size_t),
    "quorumlock_event_fault_count": (c_size_t, _HANDLE),
    "quorumlock_event_fault": (_HANDLE, _HANDLE, c_size_t),
    "quorumlock_event_waited_us": (c_uint64, _HANDLE),
    "quorumlock_event_has_waited": (c_int, _HANDLE),
    "quorumlock_event_held_us": (c_uint64, _HANDLE),
    "quorumlock_event_reason": (c_int, _HANDLE),
    "quorumlock_event_severity": (c_int, _HANDLE),
    "quorumlock_event_attempts": (c_uint32, _HANDLE),
    "quorumlock_event_round_trips": (c_uint32, _HANDLE),
    "quorumlock_event_position": (c_uint32, _HANDLE),
    "quorumlock_event_told": (c_uint32, _HANDLE),
    "quorumlock_event_unasked": (c_uint32, _HANDLE),
    "quorumlock_event_challenges": (c_uint32, _HANDLE),
    "quorumlock_event_granted": (c_size_t, _HANDLE),
    "quorumlock_event_refused": (c_size_t, _HANDLE),
    "quorumlock_event_nodes": (c_size_t, _HANDLE),
    "quorumlock_event_ttl_ms": (c_uint64, _HANDLE),
    "quorumlock_event_remaining_ms": (c_uint64, _HANDLE),
    "quorumlock_event_policy": (_Text, _HANDLE),
    "quorumlock_event_dropped": (c_uint64, _HANDLE),
    "quorumlock_event_is_automatic": (c_int, _HANDLE),
    "quorumlock_event_is_freed": (c_int, _HANDLE),
}

_BUILD = "cargo rustc --release --lib --features capi --crate-type cdylib"


class _NotLoaded:
    def __getattr__(self, _):
        raise RuntimeError("the library is not loaded: call quorumlock.load() first")


_c = _NotLoaded()


def _pointer_class(free):
    """Pointers that are given back to the library with their last reference. A call has one until it has returned.

    The function itself is `__del__`: in one of Python's, the handler of a signal could run, and what that raises would
    be lost.
    """
    bind = ctypes.pythonapi.PyInstanceMethod_New
    bind.restype, bind.argtypes = ctypes.py_object, (ctypes.py_object,)
    # When the interpreter ends, this module may go before a pointer, and the library calls these until that has gone.
    callbacks = (_lost, _observe, _provide, _release)
    return type("Pointer", (c_void_p,), {"__del__": bind(free), "callbacks": callbacks})


def load(path=None):
    """Loads the library. To be called once, before anything else. Raises `OSError` if it is not there, or another one.

    Without a path it is libquorumlock.so beside this file, where a wheel has it, or else that of the system. A name
    without a slash is searched for in the folders of the system and of LD_LIBRARY_PATH.
    """
    global _c
    if not path:
        inside = os.path.join(os.path.dirname(__file__), "libquorumlock.so")
        path = inside if os.path.exists(inside) else "libquorumlock.so"
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        message = f"cannot load the library: {error}; this builds it as target/release/libquorumlock.so: {_BUILD}"
        raise OSError(message) from None
    for name, (result, *arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise OSError(f"{path} is not the library for this version of quorumlock.py: it has no {name}") from None
        function.restype, function.argtypes = result, arguments
        if name.endswith("_free"):
            function.pointer = _pointer_class(function)
    _c = library


def version():
    """The version of the library, such as "0.1.0"."""
    return str(_c.quorumlock_version())


def version_number():
    """major * 65536 + minor * 256 + patch."""
    return _c.quorumlock_version_number()


def now():
    """The clock of deadlines, in seconds: see `Mutex.try_lock_until`."""
    return _c.quorumlock_now_ms() / 1000


@dataclass(frozen=True)
class Fault:
    """A node that gave no usable answer, and why. `phase` and `cause` are numbers of quorumlock.h."""

    address: str
    phase: int
    cause: int
    number: int
    message: str

    @staticmethod
    def _of(fault):
        return Fault(
            str(_c.quorumlock_fault_address(fault)),
            _c.quorumlock_fault_phase(fault),
            _c.quorumlock_fault_cause(fault),
            _c.quorumlock_fault_number(fault),
            str(_c.quorumlock_fault_message(fault)),
        )


class Failure(Exception):
    """What went wrong, in one line, with its `result` and the `faults` of the nodes.

    `is_permanent`: trying again cannot help until something is changed.
    """

    def __init__(self, result, message, faults=(), is_permanent=True):
        super().__init__(message)
        self.result, self.faults, self.is_permanent = result, list(faults), is_permanent


def _known(result):
    """A number of a later version stays a number."""
    try:
        return Result(result)
    except ValueError:
        return result


def _check(result):
    """Raises what is no answer."""
    if result >= Result.CONFIG:
        raise Failure(_known(result), str(_c.quorumlock_result_text(result)))
    return result


def _check_tls(setting, result):
    """Raises what is no answer to a setting of TLS, with its name."""
    if result == Result.UNSUPPORTED:
        raise Failure(Result.UNSUPPORTED, f"{setting}: this build of the library has no TLS; build it by {_BUILD},tls")
    return _check(result)


def _call(function, *arguments):
    """Calls a function whose last argument is the error, and raises that."""
    error = c_void_p()
    with _handlers_later() if _callbacks and _is_main_thread() else contextlib.nullcontext():
        result = function(*arguments, byref(error))
    if not error:
        return _check(result)
    try:
        faults = range(_c.quorumlock_error_fault_count(error))
        raise Failure(
            _known(_c.quorumlock_error_result(error)),
            str(_c.quorumlock_error_message(error)),
            [Fault._of(_c.quorumlock_error_fault(error, index)) for index in faults],
            bool(_c.quorumlock_error_is_permanent(error)),
        )
    finally:
        _c.quorumlock_error_free(error)


def _must(function, *arguments):
    """And raises every other answer than OK too."""
    result = _call(function, *arguments)
    if result != Result.OK:
        raise Failure(_known(result), str(_c.quorumlock_result_text(result)))


def _pointer(free, value):
    """A pointer that this function gives back when nothing uses it any more."""
    return free.pointer(value)


def _owned(free, function, *arguments):
    """What such a function gives, until nothing uses it any more."""
    made = _pointer(free, None)
    _must(function, *arguments, byref(made))
    return made


def _made(function, *arguments):
    """What such a function gives, and what the caller gives back."""
    made = c_void_p()
    _must(function, *arguments, byref(made))
    return made


def _taken(function, *arguments):
    """The guard that such a function gives, or None."""
    made = _pointer(_c.quorumlock_guard_free, None)
    try:
        return Guard(made) if _call(function, *arguments, byref(made)) == Result.OK else None
    except BaseException:
        # If the handler of a signal raised it, the lock may be taken. The frames of the exception have the pointer.
        guard, made.value = made.value, None
        _c.quorumlock_guard_free(guard)
        raise


def _is_main_thread():
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _handlers_later():
    """Lets the handlers of signals run at its end, on the main thread.

    Python runs them before the next step of that thread. Within a callback of the library, what they raise is lost; and
    a lock that was taken must not be lost by it. What one of them raises keeps no other one from being set again, nor
    from running.
    """
    handlers, came = {}, []

    def run():
        for number, frame in reversed(came):
            stack.callback(handlers[number], number, frame)

    with contextlib.ExitStack() as stack:
        stack.callback(run)
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler
                stack.callback(signal.signal, number, handler)
                signal.signal(number, lambda *signalled: came.append(signalled))
        yield


@contextlib.contextmanager
def _at_signals(action):
    """Runs an action on another thread at each signal that has a handler. Gives a list that is not empty from then on.

    The main thread runs no handler before its call has returned. What a signal does at once is to write its number to a
    descriptor.
    """
    signals = []
    reading, writing = socket.socketpair()
    writing.setblocking(False)

    def watch(before):
        while True:
            numbers = reading.recv(64)
            if not numbers:
                return
            signals.extend(numbers)
            action()
            if before != -1:
                with contextlib.suppress(OSError):
                    os.write(before, numbers)

    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=watch, args=(before,), daemon=True)
    try:
        watcher.start()
        yield signals
    finally:
        signal.set_wakeup_fd(before)
        writing.close()
        watcher.join()
        reading.close()


def _millis(seconds):
    """At most what a number of C can be: ctypes takes the lowest digits of a longer one."""
    return int(min(max(0, seconds * 1000), 2**62))


def _bytes(text):
    encoded = text.encode()
    return encoded, len(encoded)


class _Handle:
    """Something of the library's that is given back once.

    The library's functions take it as it is, so that only the calls themselves have its pointer. An exception has the
    frames that it came through: with a pointer in them, it would keep a lock.
    """

    # By this name, ctypes takes what is passed for it. None is NULL.
    _as_parameter_ = None

    def close(self):
        """Gives it back; as soon as they return, if other threads are in calls with it. A second time does nothing.

        No other function may be called after it.
        """
        self._as_parameter_ = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _text(function, handle):
    """A text that lasts as long as the handle."""
    pointer = handle._as_parameter_
    try:
        return str(function(pointer))
    finally:
        del pointer


def _given(kind, value):
    """What was given for something of this kind. For ctypes, a text is a pointer as well."""
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} is expected, not {type(value).__name__}")
    return value


# What the library may still call, by number, until it gives it back.
_callbacks = {}
_numbers = iter(range(1, 1 << 62))


def _keep(callback):
    number = next(_numbers)
    _callbacks[number] = callback
    return number


@_CALLBACK
def _release(userdata, callbacks=_callbacks):
    callbacks.pop(userdata, None)


@_OBSERVER
def _observe(userdata, event):
    try:
        _callbacks[userdata](Event(event))
    except Exception:  # It must not reach the library.
        pass


@_PROVIDER
def _provide(userdata, node, login):
    try:
        user, password, *refresh = _callbacks[userdata](str(node))
        user = (None, 0) if user is None else _bytes(user)
        _check(_c.quorumlock_login_set(login, *user, *_bytes(password), _millis(*refresh) if refresh else 0))
        return 0
    except Exception:  # It must not reach the library, and may contain a secret.
        return 1


@_CALLBACK
def _lost(userdata):
    try:
        _callbacks[userdata]()
    except Exception:
        pass


class Event:
    """Something that happened, copied. Times are seconds; `kind`, `reason` and `severity` are numbers of the header."""

    def __init__(self, event):
        self.kind = _c.quorumlock_event_kind(event)
        self.code = str(_c.quorumlock_event_code(event))
        self.message = str(_c.quorumlock_event_message(event))
        self.name = str(_c.quorumlock_event_name(event))
        count = _c.quorumlock_event_address_count(event)
        self.addresses = [str(_c.quorumlock_event_address(event, index)) for index in range(count)]
        count = _c.quorumlock_event_fault_count(event)
        self.faults = [Fault._of(_c.quorumlock_event_fault(event, index)) for index in range(count)]
        self.waited = _c.quorumlock_event_waited_us(event) / 1_000_000
        self.has_waited = bool(_c.quorumlock_event_has_waited(event))
        self.held = _c.quorumlock_event_held_us(event) / 1_000_000
        self.reason = _c.quorumlock_event_reason(event)
        self.severity = _c.quorumlock_event_severity(event)
        self.attempts = _c.quorumlock_event_attempts(event)
        self.round_trips = _c.quorumlock_event_round_trips(event)
        self.position = _c.quorumlock_event_position(event)
        self.told = _c.quorumlock_event_told(event)
        self.unasked = _c.quorumlock_event_unasked(event)
        self.challenges = _c.quorumlock_event_challenges(event)
        self.granted = _c.quorumlock_event_granted(event)
        self.refused = _c.quorumlock_event_refused(event)
        self.nodes = _c.quorumlock_event_nodes(event)
        self.ttl = _c.quorumlock_event_ttl_ms(event) / 1000
        self.remaining = _c.quorumlock_event_remaining_ms(event) / 1000
        self.policy = str(_c.quorumlock_event_policy(event))
        self.dropped = _c.quorumlock_event_dropped(event)
        self.is_automatic = bool(_c.quorumlock_event_is_automatic(event))
        self.is_freed = bool(_c.quorumlock_event_is_freed(event))


class NodeStatus:
    """How a node looked when it was asked for. `state` and `role` are numbers of quorumlock.h; times are seconds."""

    def __init__(self, nodes, index):
        self.state = _c.quorumlock_nodes_state(nodes, index)
        self.message = str(_c.quorumlock_nodes_message(nodes, index))
        self.address = str(_c.quorumlock_nodes_address(nodes, index))
        self.state_age = _c.quorumlock_nodes_state_age_ms(nodes, index) / 1000
        self.quarantine = _c.quorumlock_nodes_quarantine_ms(nodes, index) / 1000
        self.counted = _c.quorumlock_nodes_counted_ms(nodes, index) / 1000
        self.is_connected = bool(_c.quorumlock_nodes_is_connected(nodes, index))
        self.is_durable = bool(_c.quorumlock_nodes_is_durable(nodes, index))
        self.server = str(_c.quorumlock_nodes_server(nodes, index))
        self.run_id = str(_c.quorumlock_nodes_run_id(nodes, index))
        self.role = _c.quorumlock_nodes_role(nodes, index)
        self.eviction = str(_c.quorumlock_nodes_eviction(nodes, index))
        fault = _c.quorumlock_nodes_last_fault(nodes, index)
        self.last_fault = Fault._of(fault) if fault else None
        self.reply_count = _c.quorumlock_nodes_latency_count(nodes, index)
        self.reply_p50 = _c.quorumlock_nodes_latency_p50_us(nodes, index) / 1_000_000
        self.reply_p99 = _c.quorumlock_nodes_latency_p99_us(nodes, index) / 1_000_000
        self.reply_max = _c.quorumlock_nodes_latency_max_us(nodes, index) / 1_000_000
        kinds = range(_c.quorumlock_nodes_fault_kinds(nodes, index))
        self.faults = [
            (
                Fault._of(_c.quorumlock_nodes_fault(nodes, index, kind)),
                _c.quorumlock_nodes_fault_count(nodes, index, kind),
            )
            for kind in kinds
        ]


# The label "host/pid" of this machine and process.
HERE = object()


class Holder:
    """The client that has a lock, as nodes said. `remaining` is in seconds, or None if its keys have no expiry."""

    def __init__(self, holder):
        self.message = str(_c.quorumlock_holder_message(holder))
        self.label = str(_c.quorumlock_holder_label(holder)) or None
        remaining = _c.quorumlock_holder_remaining_ms(holder)
        self.remaining = None if remaining == 2**64 - 1 else remaining / 1000
        count = _c.quorumlock_holder_node_count(holder)
        self.nodes = [str(_c.quorumlock_holder_node(holder, index)) for index in range(count)]


class Counters(_Handle):
    """What clients count, for a metrics server. With a `separator`, the class of a resource is its name up to it."""

    def __init__(self, separator=None):
        made = _c.quorumlock_counters_new(ord(separator) if separator else 0)
        self._as_parameter_ = _pointer(_c.quorumlock_counters_free, made)
        if not made:
            raise ValueError("separator: one ASCII character")

    def text(self):
        """All series in the Prometheus text format."""
        parts = []
        write = _WRITE(lambda _, data, length: parts.append(ctypes.string_at(data, length)))
        _check(_c.quorumlock_counters_text(self, write, None))
        return b"".join(parts).decode()


def _setting(name, value):
    """The text of a setting. Numbers are seconds, but for the one factor."""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        return ",".join(_setting(name, part) for part in value)
    if isinstance(value, bool) or name in ("durable", "release_notifications"):
        return str(bool(value)).lower()
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name}: a text, a number or a pair, not {type(value).__name__}")
    if name == "drift_factor":
        return str(value)
    return f"{max(0, int(value * 1_000_000))}us"


class Client(_Handle):
    """The nodes of one quorum, by their URLs, and the connections to them. A program needs one.

    `settings` are those of `quorumlock_config_set`, such as `node_timeout=1` or `restart_policy="strict"`; those that
    are not given, or None, have the library's defaults, `retry_delay` is a pair, and `label` is a text, or `HERE`.
    Each of `observers` is called with an `Event`, on any thread. `credentials` is called with the address of a node,
    on a thread of the library's, before each connection: it gives user (or None), password and, if it is to be called
    again after so many seconds, these; an exception leaves what it gave before. For nodes by `rediss://`:
    `tls_identity` is a pair of certificate and key in PEM.
    """

    def __init__(
        self,
        nodes,
        *,
        label=None,
        tls_roots_pem=None,
        tls_identity=None,
        observers=(),
        counters=None,
        credentials=None,
        **settings,
    ):
        config = _c.quorumlock_config_new()
        try:
            for url in [nodes] if isinstance(nodes, str) else nodes:
                _check(_c.quorumlock_config_add_node(config, *_bytes(url)))
            if label is HERE:
                _check(_c.quorumlock_config_set_label_here(config))
            elif label is not None:
                settings["label"] = label
            for name, value in settings.items():
                if value is None:
                    continue
                _must(_c.quorumlock_config_set, config, *_bytes(name), *_bytes(_setting(name, value)))
            if tls_roots_pem is not None:
                result = _c.quorumlock_config_set_tls_roots_pem(config, *_bytes(tls_roots_pem))
                _check_tls("tls_roots_pem", result)
            if tls_identity is not None:
                certificate, key = map(_bytes, tls_identity)
                result = _c.quorumlock_config_set_tls_identity_pem(config, *certificate, *key)
                _check_tls("tls_identity", result)
            if credentials is not None:
                _check(_c.quorumlock_config_set_provider(config, _provide, _keep(credentials), _release))
            for observer in observers:
                _check(_c.quorumlock_config_add_observer(config, _observe, _keep(observer), _release))
            if counters is not None:
                _check(_c.quorumlock_counters_attach(_given(Counters, counters), config))
            self._as_parameter_ = _owned(_c.quorumlock_client_free, _c.quorumlock_client_new, config)
        finally:
            _c.quorumlock_config_free(config)

    @classmethod
    def from_env(cls, prefix="QUORUMLOCK_"):
        """A client of the nodes and settings in the environment variables that begin with the prefix."""
        client = cls.__new__(cls)
        config = _made(_c.quorumlock_config_from_env, *_bytes(prefix))
        try:
            client._as_parameter_ = _owned(_c.quorumlock_client_free, _c.quorumlock_client_new, config)
        finally:
            _c.quorumlock_config_free(config)
        return client

    def connect(self, timeout):
        """Makes all connections, and raises when fewer than a majority can vote. Gives the nodes, as `nodes()` does."""
        return self._copied(_made(_c.quorumlock_client_connect, self, _millis(timeout)))

    def nodes(self):
        """How the nodes look now, in the order in which they were named."""
        return self._copied(_made(_c.quorumlock_client_nodes, self))

    @staticmethod
    def _copied(nodes):
        try:
            return [NodeStatus(nodes, index) for index in range(_c.quorumlock_nodes_count(nodes))]
        finally:
            _c.quorumlock_nodes_free(nodes)

    def attach(self, lease):
        """Goes on with a lock that is held already, with default settings. Uses the lease up."""
        return Guard(_owned(_c.quorumlock_guard_free, _c.quorumlock_client_attach, self, _given(Lease, lease)))

    def flush_releases(self, timeout):
        """Waits until every node has run the pending releases, for so many seconds at most. Closes nothing."""
        _must(_c.quorumlock_client_flush_releases, self, _millis(timeout))

    def shutdown(self, timeout):
        """Grants no lock from now on, ends waits, and waits until all guards have gone and their locks are released.

        Raises SHUTDOWN_INCOMPLETE when that has not happened within so many seconds. Call it on the main thread or
        another one, not in a handler of a signal: that one may have interrupted the holder of a lock.
        """
        _must(_c.quorumlock_client_shutdown, self, _millis(timeout))


class CancelHandle(_Handle):
    """Ends waits from another thread."""

    def __init__(self):
        self._as_parameter_ = _pointer(_c.quorumlock_cancel_handle_free, _c.quorumlock_cancel_handle_new())
        # Handles of single waits, that are cancelled with it.
        self._waits = []

    def cancel(self):
        """Ends all waits that were given this handle, and those that will be."""
        _check(_c.quorumlock_cancel_handle_cancel(self))
        for wait in list(self._waits):
            wait.cancel()

    @contextlib.contextmanager
    def _of_one_wait(self):
        """A handle that is cancelled with this one."""
        wait = CancelHandle()
        self._waits.append(wait)
        try:
            if self.is_cancelled:
                wait.cancel()
            yield wait
        finally:
            self._waits.remove(wait)

    @property
    def is_cancelled(self):
        return bool(_c.quorumlock_cancel_handle_is_cancelled(self))


class Owner(_Handle):
    """An owner of reentrant locks that is no thread. It serves one thread at a time."""

    def __init__(self):
        self._as_parameter_ = _pointer(_c.quorumlock_owner_free, _c.quorumlock_owner_new())


class Mutex(_Handle):
    """The lock of one resource, or of several: all of them or none, if `name` is a list of names.

    With `permits`, at most so many are held at once: to lock it is to acquire one.

    `watchdog` switches automatic extension on; so does each of its settings. With `reentrant`, an owner may take the
    lock again that it holds: the calling thread, or an `Owner` that is given for it. Sets and permits are plain.
    """

    def __init__(
        self,
        client,
        name,
        *,
        kind=LockKind.PLAIN,
        ttl=None,
        min_hold=None,
        fair=False,
        reentrant=False,
        watchdog=False,
        watchdog_period=None,
        watchdog_notify_before=None,
        watchdog_max_extensions=None,
        watchdog_max_duration=None,
        permits=None,
    ):
        made = _pointer(_c.quorumlock_mutex_free, None)
        if kind != LockKind.PLAIN and (permits is not None or not isinstance(name, str)):
            raise ValueError("sets and permits are plain")
        if permits is not None:
            _check(_c.quorumlock_client_semaphore(_given(Client, client), *_bytes(name), permits, byref(made)))
        elif isinstance(name, str):
            _check(_c.quorumlock_client_mutex(_given(Client, client), *_bytes(name), kind, byref(made)))
        else:
            # The bytes are kept until the call has ended.
            names = [one.encode() for one in name]
            texts = (_Text * len(names))(*((ctypes.cast(one, c_void_p), len(one)) for one in names))
            _check(_c.quorumlock_client_mutex_set(_given(Client, client), texts, len(names), byref(made)))
        self._as_parameter_ = made
        if ttl is not None:
            _check(_c.quorumlock_mutex_set_ttl_ms(made, _millis(ttl)))
        if min_hold is not None:
            _check(_c.quorumlock_mutex_set_min_hold_ms(made, _millis(min_hold)))
        if fair:
            _check(_c.quorumlock_mutex_set_fair(made, 1))
        if reentrant:
            owner = reentrant if isinstance(reentrant, Owner) else None
            _check(_c.quorumlock_mutex_set_reentrant(made, owner))
        if watchdog:
            _check(_c.quorumlock_mutex_set_watchdog(made, 1))
        if watchdog_period is not None:
            _check(_c.quorumlock_mutex_set_watchdog_period_ms(made, _millis(watchdog_period)))
        if watchdog_notify_before is not None:
            _check(_c.quorumlock_mutex_set_watchdog_notify_before_ms(made, _millis(watchdog_notify_before)))
        if watchdog_max_extensions is not None:
            _check(_c.quorumlock_mutex_set_watchdog_max_extensions(made, watchdog_max_extensions))
        if watchdog_max_duration is not None:
            _check(_c.quorumlock_mutex_set_watchdog_max_duration_ms(made, _millis(watchdog_max_duration)))

    @property
    def name(self):
        return _text(_c.quorumlock_mutex_name, self)

    def lock(self, cancel=None):
        """Waits without a limit, until `cancel` is cancelled if it is given. Gives a guard."""
        return self._wait(_c.quorumlock_mutex_lock, cancel, -1)

    def try_lock(self, timeout=None, cancel=None):
        """One attempt, or waits for so many seconds at most. Gives a guard, or None if another client has the lock."""
        if timeout is None:
            return _taken(_c.quorumlock_mutex_try_lock, self)
        return self._wait(_c.quorumlock_mutex_lock, cancel, timeout=timeout)

    def try_lock_until(self, deadline, cancel=None):
        """Waits until then at the latest, by `now()`. Gives a guard, or None when another client has the lock."""
        return self._wait(_c.quorumlock_mutex_lock_deadline, cancel, _millis(deadline))

    def _wait(self, function, cancel, *until, timeout=None):
        """Calls a function that waits. On the main thread, a signal ends the call, so that its handler runs. If that
        raises nothing, the call is made again."""
        end = time.monotonic() + (timeout or 0)
        while True:
            limit = until if timeout is None else (_millis(timeout),)
            if not _is_main_thread():
                return _taken(function, self, *limit, cancel and _given(CancelHandle, cancel))
            cancel, guard, failure = cancel or CancelHandle(), None, None
            try:
                with _handlers_later(), cancel._of_one_wait() as wait, _at_signals(wait.cancel) as signals:
                    try:
                        guard = _taken(function, self, *limit, wait)
                    except Failure as error:
                        failure = error
            except BaseException:
                # A handler raised it, and the lock may be taken.
                if guard:
                    guard.close()
                raise
            if not failure:
                return guard
            if failure.result != Result.CANCELLED or cancel.is_cancelled or not signals:
                raise failure
            # No limit and a passed one stay what they are.
            timeout = timeout and max(0, end - time.monotonic())

    def holder(self):
        """Which client has the lock now, or None. It may have changed when the answer is there."""
        found = c_void_p()
        if _call(_c.quorumlock_mutex_holder, self, byref(found)) != Result.OK:
            return None
        try:
            return Holder(found)
        finally:
            _c.quorumlock_holder_free(found)

    def attach(self, lease):
        """Goes on with a lock that is held already, with this mutex's settings. Uses the lease up."""
        return Guard(_owned(_c.quorumlock_guard_free, _c.quorumlock_mutex_attach, self, _given(Lease, lease)))


class Guard(_Handle):
    """A lock that was taken. Closing it, or the end of its `with`, releases the lock without waiting for answers."""

    def __init__(self, pointer):
        self._as_parameter_ = pointer

    @property
    def name(self):
        return _text(_c.quorumlock_guard_name, self)

    @property
    def remaining(self):
        """For how many seconds the lock may still be relied on."""
        return _c.quorumlock_guard_remaining_ms(self) / 1000

    def ensure(self, at_least):
        """Raises unless the lock may be relied on for so many seconds."""
        _must(_c.quorumlock_guard_ensure, self, _millis(at_least))

    @property
    def fencing_token(self):
        """Greater than that of every one before it: send it with every write. 0 for readers, and unless fenced."""
        return _c.quorumlock_guard_fencing_token(self)

    @property
    def slot(self):
        """Which permit it is, from 0 on."""
        return _c.quorumlock_guard_slot(self)

    def unlock(self):
        """Releases the lock, and says whether it was ours to the end, or still is: another level or thread has it.

        Raises when the guard holds no lock any more: it was unlocked, closed or detached before.
        """
        result = _call(_c.quorumlock_guard_unlock, self) if self._as_parameter_ else Result.NOT_HELD
        if result == Result.NOT_HELD:
            raise Failure(Result.NOT_HELD, "unlock: the guard was unlocked, closed or detached before")
        return result in (Result.OK, Result.STILL_HELD)

    def extend(self, ttl):
        """Whether it lasts for so many seconds now. If not, it is lost. Raises when too few nodes answer."""
        return _call(_c.quorumlock_guard_extend, self, _millis(ttl)) == Result.OK

    def downgrade(self):
        """Makes a lock to write one to read."""
        _must(_c.quorumlock_guard_downgrade, self)

    def lost_descriptor(self):
        """For `select`: readable when the lock is lost. It belongs to the guard."""
        descriptor = c_int(-1)
        _must(_c.quorumlock_guard_lost_fd, self, byref(descriptor))
        return descriptor.value

    def on_lost(self, callback):
        """Has this called once, without arguments, when the lock is lost, on any thread."""
        _must(_c.quorumlock_guard_on_lost, self, _lost, _keep(callback), _release)

    def detach(self):
        """Lets go of the guard and not of the lock. Gives a lease."""
        return Lease(_owned(_c.quorumlock_lease_free, _c.quorumlock_guard_detach, self))


class Lease(_Handle):
    """A held lock without a guard, on its way elsewhere. Closing it releases nothing."""

    def __init__(self, pointer):
        self._as_parameter_ = pointer

    @staticmethod
    def from_text(text):
        return Lease(_owned(_c.quorumlock_lease_free, _c.quorumlock_lease_from_text, *_bytes(text)))

    @property
    def key(self):
        return _text(_c.quorumlock_lease_key, self)

    @property
    def ttl(self):
        return _c.quorumlock_lease_ttl_ms(self) / 1000

    @property
    def fencing_token(self):
        return _c.quorumlock_lease_fencing_token(self)

    @property
    def end(self):
        """When the lock ends by the wall clock: seconds since 1970, as `time.time()`."""
        return _c.quorumlock_lease_end_unix_ms(self) / 1000

    @property
    def remaining(self):
        return _c.quorumlock_lease_remaining_ms(self) / 1000

    def into_text(self):
        """The lease as text. Its reader has the lock. Consumes the lease."""
        secret = _made(_c.quorumlock_lease_into_text, self)
        try:
            return str(_c.quorumlock_secret_text(secret))
        finally:
            _c.quorumlock_secret_free(secret)
