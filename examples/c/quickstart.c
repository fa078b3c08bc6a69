/*
 * Takes a lock, works under it, and releases it.
 *
 *     cargo rustc --release --lib --features capi --crate-type cdylib,staticlib
 *     cc -std=c99 -Isrc/ffi examples/c/quickstart.c -Ltarget/release -lquorumlock -Wl,-rpath,target/release \
 *         -o quickstart
 *     ./quickstart redis://127.0.0.1:6379 redis://127.0.0.1:6380 redis://127.0.0.1:6381
 *
 * The exit code is 0 when the lock was held to the end, 1 when it was not, and 2 when it could not be tried.
 */
#include <quorumlock.h>
#include <stdio.h>
#include <string.h>

/* Says why something failed, node by node, and frees the error. */
static int failed(const char *what, quorumlock_error *error)
{
    quorumlock_str message = quorumlock_error_message(error);
    size_t index;

    fprintf(stderr, "%s: %.*s\n", what, (int)message.length, message.data);
    for (index = 0; index < quorumlock_error_fault_count(error); index++) {
        const quorumlock_fault *fault = quorumlock_error_fault(error, index);
        quorumlock_str address = quorumlock_fault_address(fault);
        const char *hint = quorumlock_fault_cause(fault) == QUORUMLOCK_CAUSE_AUTH ? "fix its password" : "check it";

        fprintf(stderr, "  %.*s: %s\n", (int)address.length, address.data, hint);
    }
    quorumlock_error_free(error);
    return 2;
}

/* The work, and what an owner looks at meanwhile. */
static int work(quorumlock_guard *guard)
{
    quorumlock_error *error = NULL;
    quorumlock_result result;

    printf("ours for %u ms\n", (unsigned)quorumlock_guard_remaining_ms(guard));

    /* It takes longer than we thought. */
    result = quorumlock_guard_extend(guard, 60000, &error);
    if (result == QUORUMLOCK_LOST) {
        puts("stop: another client may hold it");
        return 1;
    }
    if (result == QUORUMLOCK_EXTENSION_FAILED) {
        failed("not extended, and still ours for a moment", error);
    } else if (result != QUORUMLOCK_OK) {
        return failed("extend", error);
    }
    printf("ours for %u s\n", (unsigned)(quorumlock_guard_remaining_ms(guard) / 1000));

    /* Look again before every step that must not be done twice. */
    if (quorumlock_guard_remaining_ms(guard) == 0) {
        return 1;
    }
    return 0;
}

int main(int count, char **urls)
{
    quorumlock_config *config = quorumlock_config_new();
    quorumlock_client *client = NULL;
    quorumlock_mutex *mutex = NULL;
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;
    quorumlock_result result;
    int index, status;

    for (index = 1; index < count; index++) {
        quorumlock_config_add_node(config, urls[index], strlen(urls[index]));
    }
    /* A far node may need more than the 100 ms that it has by default. */
    result = quorumlock_config_set(config, "node_timeout", strlen("node_timeout"), "1s", strlen("1s"), &error);

    /* One client for the whole program. It connects when it is first needed. */
    if (result == QUORUMLOCK_OK) {
        result = quorumlock_client_new(config, &client, &error);
    }
    quorumlock_config_free(config);
    if (result != QUORUMLOCK_OK) {
        return failed("client", error);
    }
    result = quorumlock_client_mutex(client, "orders/42", strlen("orders/42"), QUORUMLOCK_LOCK_PLAIN, &mutex);
    if (result != QUORUMLOCK_OK) {
        quorumlock_client_free(client);
        return 2;
    }
    quorumlock_mutex_set_ttl_ms(mutex, 5000);

    result = quorumlock_mutex_lock(mutex, 1000, NULL, &guard, &error);
    if (result == QUORUMLOCK_OK) {
        status = work(guard);
        result = quorumlock_guard_unlock(guard, &error);
        if (result == QUORUMLOCK_EXPIRED) {
            puts("it took too long: another client may have had it too");
            status = 1;
        } else if (result != QUORUMLOCK_OK) {
            status = failed("unlock", error);
        } else {
            puts("released in time");
        }
        quorumlock_guard_free(guard);
    } else if (result == QUORUMLOCK_HELD) {
        puts("another client held it for the whole second");
        status = 1;
    } else {
        status = failed("lock", error);
    }

    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    return status;
}
