/*
 * A provider of credentials: it is called off the path of locks, may fail, and its userdata is released once.
 *
 *     credentials URL...     the user "app" has the password "one" on each node; prints "all kept"
 */
#define _POSIX_C_SOURCE 200809L

#include "check.h"
#include <pthread.h>
#include <time.h>

typedef struct state {
    pthread_mutex_t mutex;
    int calls, fails, released, failures;
} state;

static int read_of(state *of, const int *number)
{
    int value;
    pthread_mutex_lock(&of->mutex);
    value = *number;
    pthread_mutex_unlock(&of->mutex);
    return value;
}

static void add(state *of, int *number)
{
    pthread_mutex_lock(&of->mutex);
    ++*number;
    pthread_mutex_unlock(&of->mutex);
}

static int provide(void *userdata, quorumlock_str node, quorumlock_login *login)
{
    state *of = userdata;
    CHECK(contains(node, "127.0.0.1:"));
    CHECK(quorumlock_login_set(login, "\xff", 1, "one", 3, 0) == QUORUMLOCK_NOT_UTF8);
    CHECK(quorumlock_login_set(login, "app", 3, NULL, 0, 0) == QUORUMLOCK_NULL_POINTER);
    CHECK(quorumlock_login_set(login, NULL, 0, "replaced", 8, 0) == QUORUMLOCK_OK);
    CHECK(quorumlock_login_set(login, "app", 3, "one", 3, 20) == QUORUMLOCK_OK);
    add(of, &of->calls);
    return read_of(of, &of->fails);
}

static void release(void *userdata)
{
    state *of = userdata;
    add(of, &of->released);
}

/* Changes the config that it is released by. */
static void change_config(void *config)
{
    CHECK(quorumlock_config_set(config, "label", 5, "released", 8, NULL) == QUORUMLOCK_OK);
    CHECK(quorumlock_config_add_node(config, "redis://127.0.0.1:1", 19) == QUORUMLOCK_OK);
}

static void a_release_may_change_the_config(void)
{
    quorumlock_config *config = config_of(NULL, 0);
    CHECK(quorumlock_config_set_provider(config, provide, config, change_config) == QUORUMLOCK_OK);
    CHECK(quorumlock_config_set_provider(config, provide, NULL, NULL) == QUORUMLOCK_OK);
    quorumlock_config_free(config);
}

static void on_event(void *userdata, const quorumlock_event *event)
{
    state *of = userdata;
    if (quorumlock_event_kind(event) == QUORUMLOCK_EVENT_CREDENTIALS_FAILED) {
        CHECK(quorumlock_event_address_count(event) == 1 && quorumlock_event_fault_count(event) == 1);
        CHECK(quorumlock_fault_cause(quorumlock_event_fault(event, 0)) == QUORUMLOCK_CAUSE_CREDENTIALS);
        add(of, &of->failures);
    }
}

static void nap(void)
{
    struct timespec time = {0, 5000000};
    nanosleep(&time, NULL);
}

int main(int count, char **urls)
{
    state all = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0, 0};
    quorumlock_config *config = config_of(urls + 1, count - 1);
    quorumlock_client *client = NULL;
    quorumlock_mutex *mutex;
    quorumlock_guard *guard;

    a_release_may_change_the_config();
    CHECK(quorumlock_config_set_provider(config, NULL, &all, release) == QUORUMLOCK_NULL_POINTER);
    CHECK(all.released == 1);
    CHECK(quorumlock_config_set_provider(config, provide, &all, release) == QUORUMLOCK_OK);
    CHECK(quorumlock_config_add_observer(config, on_event, &all, NULL) == QUORUMLOCK_OK);
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    CHECK(read_of(&all, &all.calls) == 0);
    mutex = mutex_of(client, "credentials");
    while (read_of(&all, &all.calls) < 3 * (count - 1)) {
        guard = take(mutex);
        MUST(quorumlock_guard_unlock(guard, &error));
        quorumlock_guard_free(guard);
        nap();
    }
    add(&all, &all.fails);
    while (read_of(&all, &all.failures) == 0) {
        guard = take(mutex);
        MUST(quorumlock_guard_unlock(guard, &error));
        quorumlock_guard_free(guard);
        nap();
    }
    CHECK(read_of(&all, &all.released) == 1);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    while (read_of(&all, &all.released) == 1) {
        nap();
    }
    /* A thread that a provider has kept ends a moment after that. */
    for (count = 0; count < 20; count++) {
        nap();
    }
    puts("all kept");
    return 0;
}
