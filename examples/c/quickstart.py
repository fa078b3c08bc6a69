"""The same as quickstart.c, from Python, with nothing but ctypes.

    python3 examples/c/quickstart.py target/release/libquorumlock.so redis://127.0.0.1:6379 ...

A call lets other Python threads run while it waits. The exit code is 0 when the lock was ours to the end.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p

OK, HELD, EXPIRED = 0, 1, 2
FIRST_FAILURE = 100


class Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.data, self.length).decode()


def load(path):
    """The library, and what its functions take and give. Without that, ctypes takes pointers for 32-bit numbers."""
    library = ctypes.CDLL(path)
    handle, out = c_void_p, POINTER(c_void_p)
    for name, result, *arguments in [
        ("version", Text),
        ("error_message", Text, handle),
        ("error_free", None, handle),
        ("config_new", handle),
        ("config_free", None, handle),
        ("config_add_node", c_int, handle, c_char_p, c_size_t),
        ("config_set_node_timeout_ms", c_int, handle, c_uint64),
        ("client_new", c_int, handle, out, out),
        ("client_free", None, handle),
        ("mutex_new", c_int, handle, c_char_p, c_size_t, out),
        ("mutex_set_ttl_ms", c_int, handle, c_uint64),
        ("mutex_free", None, handle),
        ("mutex_lock_timeout", c_int, handle, c_uint64, handle, out, out),
        ("guard_remaining_ms", c_uint64, handle),
        ("guard_unlock", c_int, handle, out),
        ("guard_free", None, handle),
    ]:
        function = getattr(library, "quorumlock_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Failure(Exception):
    """What went wrong, in one line."""


def call(library, name, *arguments):
    """Calls a function whose last argument is the error, and raises that."""
    error = c_void_p()
    result = getattr(library, "quorumlock_" + name)(*arguments, byref(error))
    if result >= FIRST_FAILURE:
        message = str(library.quorumlock_error_message(error))
        library.quorumlock_error_free(error)
        raise Failure(message)
    return result


def main(path, *urls):
    library = load(path)
    print("quorumlock", library.quorumlock_version())
    config, client, mutex, guard = library.quorumlock_config_new(), c_void_p(), c_void_p(), c_void_p()
    for url in map(str.encode, urls):
        library.quorumlock_config_add_node(config, url, len(url))
    library.quorumlock_config_set_node_timeout_ms(config, 1000)
    try:
        call(library, "client_new", config, byref(client))
        library.quorumlock_mutex_new(client, b"orders/42", len(b"orders/42"), byref(mutex))
        library.quorumlock_mutex_set_ttl_ms(mutex, 5000)
        if call(library, "mutex_lock_timeout", mutex, 1000, None, byref(guard)) == HELD:
            print("somebody else had it for the whole second")
            return 1
        print("ours for", library.quorumlock_guard_remaining_ms(guard), "ms")
        if call(library, "guard_unlock", guard) == EXPIRED:
            print("it took too long: somebody else may have been at it too")
            return 1
        print("released in time")
        return 0
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    finally:
        library.quorumlock_guard_free(guard)
        library.quorumlock_mutex_free(mutex)
        library.quorumlock_client_free(client)
        library.quorumlock_config_free(config)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
