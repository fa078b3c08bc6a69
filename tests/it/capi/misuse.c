/* What the header promises for calls in any order, for names of every kind, and for callbacks that go far. */
#define _POSIX_C_SOURCE 200809L

#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static char **urls;
static int url_count;

static void sleep_ms(long millis)
{
    struct timespec time;
    time.tv_sec = millis / 1000;
    time.tv_nsec = millis % 1000 * 1000000;
    while (nanosleep(&time, &time) != 0) {
    }
}

/* Called from other threads: the events so far. Its mutex also makes ThreadSanitizer see the order. */
typedef struct journal {
    pthread_mutex_t mutex;
    int calls, releases, events[32];
    quorumlock_guard *guard;
    quorumlock_result result;
    int other_result;
    uint64_t remaining;
} journal;

static void journal_init(journal *journal)
{
    memset(journal, 0, sizeof *journal);
    pthread_mutex_init(&journal->mutex, NULL);
}

static int read_of(journal *journal, int *number)
{
    int value;
    pthread_mutex_lock(&journal->mutex);
    value = *number;
    pthread_mutex_unlock(&journal->mutex);
    return value;
}

static void eventually(journal *journal, int *number, int wanted)
{
    int tries;
    for (tries = 0; tries < 10000 && read_of(journal, number) < wanted; tries++) {
        sleep_ms(1);
    }
    CHECK(read_of(journal, number) == wanted);
}

static void on_call(void *userdata)
{
    journal *journal = userdata;
    pthread_mutex_lock(&journal->mutex);
    journal->calls++;
    pthread_mutex_unlock(&journal->mutex);
}

static void on_release(void *userdata)
{
    journal *journal = userdata;
    pthread_mutex_lock(&journal->mutex);
    journal->releases++;
    pthread_mutex_unlock(&journal->mutex);
}

/* -- handles in any order ------------------------------------------------------------------------------------------ */

static void handles_go_in_any_order(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "order");
    quorumlock_guard *guard = take(mutex), *other = NULL;
    quorumlock_lease *lease = NULL;

    /* The client goes first, and all that was made with it goes on. */
    quorumlock_client_free(client);
    CHECK(quorumlock_guard_remaining_ms(guard) > 0);
    CHECK(quorumlock_mutex_try_lock(mutex, &other, NULL) == QUORUMLOCK_HELD && other == NULL);
    quorumlock_mutex_free(mutex);
    MUST(quorumlock_guard_extend(guard, 30000, &error));
    MUST(quorumlock_guard_ensure(guard, 20000, &error));
    CHECK(quorumlock_guard_ensure(guard, 30000, NULL) == QUORUMLOCK_LEASE_TOO_SHORT);
    CHECK(is(quorumlock_guard_name(guard), "order"));
    MUST(quorumlock_guard_unlock(guard, &error));

    /* A guard whose lock is gone says so, as often as it is asked. */
    {
        quorumlock_error *error = NULL;
        int descriptor = -7, again;
        journal record;
        journal_init(&record);
        for (again = 0; again < 2; again++) {
            CHECK(quorumlock_guard_unlock(guard, &error) == QUORUMLOCK_NOT_HELD);
            CHECK(quorumlock_guard_extend(guard, 1000, &error) == QUORUMLOCK_NOT_HELD);
            CHECK(quorumlock_guard_detach(guard, &lease, &error) == QUORUMLOCK_NOT_HELD && lease == NULL);
            CHECK(quorumlock_guard_lost_fd(guard, &descriptor, &error) == QUORUMLOCK_NOT_HELD && descriptor == -7);
            CHECK(quorumlock_guard_on_lost(guard, on_call, &record, on_release, &error) == QUORUMLOCK_NOT_HELD);
            CHECK(quorumlock_guard_ensure(guard, 0, &error) == QUORUMLOCK_NOT_HELD);
            CHECK(quorumlock_guard_remaining_ms(guard) == 0 && error == NULL);
        }
        CHECK(record.calls == 0 && record.releases == 2);
    }
    quorumlock_guard_free(guard);
}

static void a_guard_that_is_freed_releases(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "freed");
    quorumlock_guard *guard = NULL;
    quorumlock_guard_free(take(mutex));
    MUST(quorumlock_mutex_lock(mutex, 10000, NULL, &guard, &error));
    quorumlock_guard_free(guard);
    quorumlock_client_free(client);
    quorumlock_mutex_free(mutex);
}

static void a_config_is_used_again(void)
{
    quorumlock_config *config = config_of(urls, url_count);
    quorumlock_client *plain = NULL, *other = NULL;
    quorumlock_mutex *first, *second;
    quorumlock_guard *guards[2];
    MUST(quorumlock_client_new(config, &plain, &error));
    set(config, "prefix", "other/");
    MUST(quorumlock_client_new(config, &other, &error));
    quorumlock_config_free(config);
    first = mutex_of(plain, "prefixed");
    second = mutex_of(other, "prefixed");
    guards[0] = take(first);
    guards[1] = take(second);
    quorumlock_guard_free(guards[0]);
    quorumlock_guard_free(guards[1]);
    quorumlock_mutex_free(first);
    quorumlock_mutex_free(second);
    quorumlock_client_free(plain);
    quorumlock_client_free(other);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static quorumlock_result lock_named(quorumlock_client *client, const char *name, size_t length, quorumlock_guard **guard)
{
    quorumlock_mutex *mutex = NULL;
    quorumlock_result result = quorumlock_client_mutex(client, name, length, QUORUMLOCK_LOCK_PLAIN, &mutex);
    if (result != QUORUMLOCK_OK) {
        CHECK(mutex == NULL);
        return result;
    }
    CHECK(quorumlock_mutex_name(mutex).length == length);
    result = quorumlock_mutex_try_lock(mutex, guard, NULL);
    quorumlock_mutex_free(mutex);
    return result;
}

static void names_of_every_kind(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_guard *guard = NULL, *other = NULL;
    size_t lengths[] = {(size_t)1 << 21, (size_t)-1, (size_t)-1 / 2, ((size_t)1 << 20) + 1}, index;
    char *name = malloc((size_t)1 << 20);
    CHECK(name != NULL);
    memset(name, 'n', (size_t)1 << 20);

    CHECK(lock_named(client, "", 0, &guard) == QUORUMLOCK_CONFIG && guard == NULL);
    CHECK(lock_named(client, name, 4097, &guard) == QUORUMLOCK_CONFIG && guard == NULL);
    CHECK(lock_named(client, name, (size_t)1 << 20, &guard) == QUORUMLOCK_CONFIG && guard == NULL);
    for (index = 0; index < sizeof lengths / sizeof *lengths; index++) {
        CHECK(lock_named(client, name, lengths[index], &guard) == QUORUMLOCK_TOO_LONG && guard == NULL);
    }
    CHECK(lock_named(client, "\xff\xfe", 2, &guard) == QUORUMLOCK_NOT_UTF8 && guard == NULL);
    CHECK(lock_named(client, name, 4096, &guard) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    free(name);

    /* A NUL is a byte like any other. */
    guard = NULL;
    CHECK(lock_named(client, "a\0b", 3, &guard) == QUORUMLOCK_OK);
    CHECK(lock_named(client, "a\0b", 3, &other) == QUORUMLOCK_HELD && other == NULL);
    CHECK(quorumlock_guard_name(guard).length == 3 && memcmp(quorumlock_guard_name(guard).data, "a\0b", 3) == 0);
    CHECK(lock_named(client, "a\0c", 3, &other) == QUORUMLOCK_OK);
    quorumlock_guard_free(other);
    other = NULL;
    CHECK(lock_named(client, "a", 1, &other) == QUORUMLOCK_OK);
    quorumlock_guard_free(other);
    quorumlock_guard_free(guard);
    quorumlock_client_free(client);
}

/* -- outputs ------------------------------------------------------------------------------------------------------- */

/* Nothing is written but by a call that succeeds, whatever else it gives. */
static void outputs_are_left_alone(void)
{
    quorumlock_client *client = client_of(urls, url_count), *nobody = (void *)&url_count;
    quorumlock_config *empty = quorumlock_config_new();
    quorumlock_mutex *mutex = mutex_of(client, "outputs"), *unusable = mutex_of(client, ""), *none = (void *)&url_count;
    quorumlock_guard *guard = take(mutex), *other = (void *)&url_count;
    quorumlock_lease *lease = (void *)&url_count;
    quorumlock_error *error = (void *)&url_count;
    int descriptor = -7;

    CHECK(quorumlock_mutex_try_lock(mutex, &other, &error) == QUORUMLOCK_HELD);
    CHECK(quorumlock_mutex_lock(mutex, 1, NULL, &other, &error) == QUORUMLOCK_HELD);
    CHECK(quorumlock_guard_unlock(guard, &error) == QUORUMLOCK_OK);
    CHECK(quorumlock_guard_unlock(guard, &error) == QUORUMLOCK_NOT_HELD);
    CHECK(quorumlock_guard_extend(guard, 1000, &error) == QUORUMLOCK_NOT_HELD);
    CHECK(quorumlock_guard_detach(guard, &lease, &error) == QUORUMLOCK_NOT_HELD);
    CHECK(quorumlock_guard_lost_fd(guard, &descriptor, &error) == QUORUMLOCK_NOT_HELD);
    CHECK(error == (void *)&url_count);
    CHECK(quorumlock_mutex_lock(unusable, -1, NULL, &other, NULL) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_client_new(empty, &nobody, NULL) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_client_mutex(client, "\xff", 1, QUORUMLOCK_LOCK_PLAIN, &none) == QUORUMLOCK_NOT_UTF8);
    CHECK(quorumlock_lease_from_text("nonsense", 8, &lease, NULL) == QUORUMLOCK_CONFIG);
    CHECK(other == (void *)&url_count && nobody == (void *)&url_count && none == (void *)&url_count);
    CHECK(lease == (void *)&url_count && descriptor == -7);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(unusable);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    quorumlock_config_free(empty);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static void settings_that_cannot_be_used(void)
{
    quorumlock_config *config = quorumlock_config_new();
    quorumlock_client *client = NULL;
    quorumlock_error *error = NULL;
    CHECK(quorumlock_client_new(config, &client, &error) == QUORUMLOCK_CONFIG && client == NULL);
    CHECK(quorumlock_error_result(error) == QUORUMLOCK_CONFIG && contains(quorumlock_error_message(error), "no node"));
    CHECK(quorumlock_error_fault_count(error) == 0 && quorumlock_error_fault(error, 0) == NULL);
    quorumlock_error_free(error);
    CHECK(quorumlock_config_add_node(config, "redis://:hunter2@h:1", 20) == QUORUMLOCK_OK);
    CHECK(refuses(config, "drift_factor", "2", "drift_factor: drift_factor must be"));
    CHECK(refuses(config, "ttl", "hunter2", "ttl: must be a duration"));
    CHECK(refuses(config, "restart_policy", "", "restart_policy: must be observed, strict or off"));
    CHECK(refuses(config, "TTL", "1s", "no setting has the name \"TTL\""));
    CHECK(refuses(config, "nodes", "", "no setting"));
    set(config, "ttl", "90s");
    CHECK(quorumlock_client_new(config, &client, &error) == QUORUMLOCK_CONFIG && client == NULL);
    CHECK(contains(quorumlock_error_message(error), "ttl (90 s) is longer than max_ttl (60 s)"));
    CHECK(!contains(quorumlock_error_message(error), "hunter2"));
    quorumlock_error_free(error);
    /* The caller need not take the error. */
    CHECK(quorumlock_client_new(config, &client, NULL) == QUORUMLOCK_CONFIG && client == NULL);
    quorumlock_config_free(config);
}

static void the_environment_names_nodes(void)
{
    quorumlock_config *config = (void *)&url_count;
    quorumlock_client *client;
    quorumlock_error *error = NULL;
    CHECK(quorumlock_config_from_env("LOCKS_", 6, &config, &error) == QUORUMLOCK_CONFIG);
    CHECK(contains(quorumlock_error_message(error), "LOCKS_NODES is not set") && config == (void *)&url_count);
    quorumlock_error_free(error);
    CHECK(setenv("LOCKS_NODES", "redis://:hunter2@", 1) == 0);
    CHECK(quorumlock_config_from_env("LOCKS_", 6, &config, &error) == QUORUMLOCK_CONFIG);
    CHECK(contains(quorumlock_error_message(error), "LOCKS_NODES: node 0: no host"));
    CHECK(!contains(quorumlock_error_message(error), "hunter2"));
    quorumlock_error_free(error);
    CHECK(setenv("LOCKS_NODES", urls[0], 1) == 0);
    CHECK(quorumlock_config_from_env("LOCKS_", 6, &config, NULL) == QUORUMLOCK_OK);
    CHECK(quorumlock_client_new(config, &client, NULL) == QUORUMLOCK_OK);
    quorumlock_client_free(client);
    quorumlock_config_free(config);
}

static void every_node_has_its_cause(void)
{
    char *dead[] = {(char *)"redis://127.0.0.1:1", (char *)"redis://127.0.0.1:2"};
    quorumlock_client *client = client_of(dead, 2);
    quorumlock_mutex *mutex = mutex_of(client, "errors");
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;
    size_t index;
    CHECK(quorumlock_mutex_try_lock(mutex, &guard, &error) == QUORUMLOCK_UNAVAILABLE && guard == NULL);
    CHECK(quorumlock_error_fault_count(error) == 2 && quorumlock_error_fault(error, 2) == NULL);
    for (index = 0; index < 2; index++) {
        const quorumlock_fault *fault = quorumlock_error_fault(error, index);
        CHECK(is(quorumlock_fault_address(fault), index == 0 ? "127.0.0.1:1" : "127.0.0.1:2"));
        CHECK(quorumlock_fault_phase(fault) == QUORUMLOCK_PHASE_CONNECT);
        CHECK(quorumlock_fault_cause(fault) == QUORUMLOCK_CAUSE_REFUSED && quorumlock_fault_number(fault) == -1);
        CHECK(contains(quorumlock_fault_message(fault), "refused"));
    }
    quorumlock_error_free(error);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    CHECK(is(quorumlock_result_text(QUORUMLOCK_HELD), "held by another client"));
    CHECK(is(quorumlock_result_text(-1), "unknown result"));
    CHECK(quorumlock_version_number() / 65536 == QUORUMLOCK_VERSION_MAJOR);
}

/* -- waiting ------------------------------------------------------------------------------------------------------- */

static quorumlock_cancel_handle *cancel;
static quorumlock_mutex *waited_for;

static void *wait_until_cancelled(void *unused)
{
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;
    CHECK(quorumlock_mutex_lock(waited_for, -1, cancel, &guard, &error) == QUORUMLOCK_CANCELLED && guard == NULL);
    CHECK(quorumlock_error_result(error) == QUORUMLOCK_CANCELLED);
    quorumlock_error_free(error);
    return unused;
}

static void waits_end_when_they_should(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = waited_for = mutex_of(client, "waits");
    quorumlock_guard *guard = take(mutex), *other = NULL;
    pthread_t thread;
    uint64_t before = quorumlock_now_ms();

    CHECK(quorumlock_mutex_lock_deadline(mutex, 0, NULL, &other, NULL) == QUORUMLOCK_HELD);
    CHECK(quorumlock_mutex_lock(mutex, 0, NULL, &other, NULL) == QUORUMLOCK_HELD);
    CHECK(quorumlock_mutex_lock_deadline(mutex, before + 60, NULL, &other, NULL) == QUORUMLOCK_HELD);
    CHECK(quorumlock_now_ms() - before >= 60);
    CHECK(quorumlock_mutex_lock(mutex, 40, NULL, &other, NULL) == QUORUMLOCK_HELD);
    CHECK(quorumlock_now_ms() - before >= 100 && other == NULL);

    cancel = quorumlock_cancel_handle_new();
    CHECK(!quorumlock_cancel_handle_is_cancelled(cancel));
    CHECK(pthread_create(&thread, NULL, wait_until_cancelled, NULL) == 0);
    sleep_ms(20);
    CHECK(quorumlock_cancel_handle_cancel(cancel) == QUORUMLOCK_OK);
    pthread_join(thread, NULL);
    CHECK(quorumlock_cancel_handle_is_cancelled(cancel) == 1);
    /* And every later wait. */
    CHECK(quorumlock_mutex_lock(mutex, INT64_MAX, cancel, &other, NULL) == QUORUMLOCK_CANCELLED);
    CHECK(quorumlock_mutex_lock_deadline(mutex, INT64_MAX, cancel, &other, NULL) == QUORUMLOCK_CANCELLED);
    quorumlock_cancel_handle_free(cancel);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
}

static pthread_barrier_t both_are_here;

static void *wait_for_what_is_freed(void *output)
{
    pthread_barrier_wait(&both_are_here);
    MUST(quorumlock_mutex_lock(waited_for, -1, NULL, output, &error));
    return NULL;
}

static void handles_outlive_the_calls_that_use_them(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_guard *guard, *other = NULL;
    pthread_t thread;
    waited_for = mutex_of(client, "outlive");
    guard = take(waited_for);
    CHECK(pthread_barrier_init(&both_are_here, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_what_is_freed, &other) == 0);
    pthread_barrier_wait(&both_are_here);
    /* The call has begun when the handles go, on a busy machine as well. */
    sleep_ms(300);
    quorumlock_mutex_free(waited_for);
    quorumlock_client_free(client);
    quorumlock_guard_free(guard);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&both_are_here);
    CHECK(quorumlock_guard_remaining_ms(other) > 0);
    quorumlock_guard_free(other);
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

static void a_watchdog_is_switched_on_and_off(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "watchdog");
    quorumlock_guard *guard;
    /* A busy machine may let the watchdog wait for hundreds of milliseconds. */
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 2000) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_watchdog(mutex, 1) == QUORUMLOCK_OK);
    guard = take(mutex);
    sleep_ms(2500);
    CHECK(quorumlock_guard_remaining_ms(guard) > 0);
    MUST(quorumlock_guard_unlock(guard, &error));
    quorumlock_guard_free(guard);
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 400) == QUORUMLOCK_OK);

    CHECK(quorumlock_mutex_set_watchdog_notify_before_ms(mutex, 500) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_try_lock(mutex, &guard, NULL) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_watchdog_notify_before_ms(mutex, 10) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_watchdog_period_ms(mutex, 0) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_try_lock(mutex, &guard, NULL) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_watchdog(mutex, 0) == QUORUMLOCK_OK);
    guard = take(mutex);
    sleep_ms(420);
    CHECK(quorumlock_guard_remaining_ms(guard) == 0);
    CHECK(quorumlock_guard_extend(guard, 400, NULL) == QUORUMLOCK_LOST);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_EXPIRED);
    quorumlock_guard_free(guard);

    CHECK(quorumlock_mutex_set_watchdog_max_extensions(mutex, 0) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_watchdog_max_duration_ms(mutex, 10) == QUORUMLOCK_OK);
    guard = take(mutex);
    sleep_ms(420);
    CHECK(quorumlock_guard_remaining_ms(guard) == 0);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
}

static int is_readable(int descriptor, int patience)
{
    struct pollfd wanted;
    wanted.fd = descriptor;
    wanted.events = POLLIN;
    wanted.revents = 0;
    return poll(&wanted, 1, patience) == 1 && wanted.revents == POLLIN;
}

static void a_loss_is_told_to_event_loops_and_callbacks(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "lost");
    quorumlock_guard *guard;
    int descriptor = -1, same = -1;
    journal record;
    journal_init(&record);
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 600) == QUORUMLOCK_OK);
    guard = take(mutex);
    MUST(quorumlock_guard_lost_fd(guard, &descriptor, &error));
    MUST(quorumlock_guard_lost_fd(guard, &same, &error));
    CHECK(descriptor >= 0 && descriptor == same && (fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    MUST(quorumlock_guard_on_lost(guard, on_call, &record, on_release, &error));
    MUST(quorumlock_guard_on_lost(guard, on_call, &record, NULL, &error));
    CHECK(!is_readable(descriptor, 0));
    CHECK(is_readable(descriptor, 10000) && quorumlock_guard_remaining_ms(guard) == 0);
    eventually(&record, &record.calls, 2);
    eventually(&record, &record.releases, 1);
    CHECK(is_readable(descriptor, 0));
    /* A callback that is registered late is called here. */
    MUST(quorumlock_guard_on_lost(guard, on_call, &record, on_release, &error));
    CHECK(record.calls == 3 && record.releases == 2);
    quorumlock_guard_free(guard);
    CHECK(fcntl(descriptor, F_GETFD) == -1 && errno == EBADF);

    /* A release is no loss. */
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 60000) == QUORUMLOCK_OK);
    guard = take(mutex);
    MUST(quorumlock_guard_lost_fd(guard, &descriptor, &error));
    MUST(quorumlock_guard_on_lost(guard, on_call, &record, on_release, &error));
    MUST(quorumlock_guard_unlock(guard, &error));
    CHECK(!is_readable(descriptor, 50));
    eventually(&record, &record.releases, 3);
    CHECK(record.calls == 3);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
}

/* -- fencing ------------------------------------------------------------------------------------------------------- */

static void numbers_grow_and_stay_known(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of_kind(client, "fenced", QUORUMLOCK_LOCK_FENCED);
    quorumlock_mutex *plain = mutex_of(client, "fenced");
    quorumlock_guard *first, *second, *other;
    quorumlock_lease *lease = NULL, *read = NULL;
    quorumlock_secret *secret = NULL;
    uint64_t numbers[3];

    first = take(mutex);
    numbers[0] = quorumlock_guard_fencing_token(first);
    MUST(quorumlock_guard_unlock(first, &error));
    second = take(mutex);
    numbers[1] = quorumlock_guard_fencing_token(second);
    CHECK(numbers[0] > 0 && numbers[1] > numbers[0] && quorumlock_guard_fencing_token(first) == numbers[0]);
    quorumlock_guard_free(first);
    CHECK(is(quorumlock_guard_name(second), "fenced") && is(quorumlock_mutex_name(mutex), "fenced"));

    /* Another lock, though it has the same name. */
    other = take(plain);
    CHECK(quorumlock_guard_fencing_token(other) == 0);
    quorumlock_guard_free(other);

    /* The number goes along. */
    MUST(quorumlock_guard_detach(second, &lease, &error));
    quorumlock_guard_free(second);
    CHECK(quorumlock_lease_fencing_token(lease) == numbers[1]);
    MUST(quorumlock_lease_into_text(lease, &secret, &error));
    quorumlock_lease_free(lease);
    MUST(quorumlock_lease_from_text(
        quorumlock_secret_text(secret).data, quorumlock_secret_text(secret).length, &read, &error));
    quorumlock_secret_free(secret);
    MUST(quorumlock_client_attach(client, read, &second, &error));
    quorumlock_lease_free(read);
    CHECK(quorumlock_guard_fencing_token(second) == numbers[1]);
    MUST(quorumlock_guard_extend(second, 20000, &error));
    MUST(quorumlock_guard_unlock(second, &error));
    quorumlock_guard_free(second);

    CHECK(quorumlock_mutex_set_watchdog(mutex, 1) == QUORUMLOCK_OK);
    first = take(mutex);
    numbers[2] = quorumlock_guard_fencing_token(first);
    CHECK(numbers[2] > numbers[1]);
    quorumlock_guard_free(first);
    first = NULL;
    MUST(quorumlock_mutex_lock(plain, 10000, NULL, &first, &error));
    CHECK(quorumlock_guard_fencing_token(first) == 0);
    quorumlock_guard_free(first);
    quorumlock_mutex_free(mutex);
    quorumlock_mutex_free(plain);
    quorumlock_client_free(client);
}

/* -- handing over -------------------------------------------------------------------------------------------------- */

static void a_lock_goes_to_another_client(void)
{
    quorumlock_client *client = client_of(urls, url_count), *another = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "handed over"), *theirs = mutex_of(another, "handed over");
    quorumlock_mutex *left_alone = mutex_of(client, "left alone");
    quorumlock_guard *guard = take(mutex), *attached = NULL;
    quorumlock_lease *lease = NULL, *read = NULL;
    quorumlock_secret *secret = NULL, *none = NULL;
    quorumlock_error *error = NULL;
    quorumlock_str text;

    MUST(quorumlock_guard_detach(guard, &lease, &error));
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_NOT_HELD);
    quorumlock_guard_free(guard);
    CHECK(is(quorumlock_lease_key(lease), "handed over") && quorumlock_lease_ttl_ms(lease) == 10000);
    CHECK(quorumlock_lease_remaining_ms(lease) > 0 && quorumlock_lease_end_unix_ms(lease) > 1600000000000u);
    MUST(quorumlock_lease_into_text(lease, &secret, &error));
    CHECK(quorumlock_lease_into_text(lease, &none, &error) == QUORUMLOCK_CONSUMED && none == NULL && error != NULL);
    quorumlock_error_free(error);
    CHECK(quorumlock_mutex_attach(mutex, lease, &attached, NULL) == QUORUMLOCK_CONSUMED && attached == NULL);
    CHECK(quorumlock_lease_remaining_ms(lease) == 0 && is(quorumlock_lease_key(lease), "handed over"));
    quorumlock_lease_free(lease);

    text = quorumlock_secret_text(secret);
    MUST(quorumlock_lease_from_text(text.data, text.length, &read, &error));
    CHECK(quorumlock_lease_from_text(text.data, text.length - 1, &lease, &error) == QUORUMLOCK_CONFIG);
    CHECK(!contains(quorumlock_error_message(error), "handed"));
    quorumlock_error_free(error);
    quorumlock_secret_free(secret);
    MUST(quorumlock_mutex_attach(theirs, read, &attached, &error));
    CHECK(quorumlock_client_attach(client, read, &guard, NULL) == QUORUMLOCK_CONSUMED);
    quorumlock_lease_free(read);
    MUST(quorumlock_guard_extend(attached, 20000, &error));

    /* And back, without text. */
    MUST(quorumlock_guard_detach(attached, &lease, &error));
    quorumlock_guard_free(attached);
    MUST(quorumlock_client_attach(client, lease, &guard, &error));
    quorumlock_lease_free(lease);
    CHECK(is(quorumlock_guard_name(guard), "handed over"));
    MUST(quorumlock_guard_unlock(guard, &error));
    quorumlock_guard_free(guard);

    /* A lease that was freed is not released. */
    guard = take(left_alone);
    MUST(quorumlock_guard_detach(guard, &lease, &error));
    quorumlock_guard_free(guard);
    quorumlock_lease_free(lease);
    CHECK(quorumlock_mutex_try_lock(left_alone, &guard, NULL) == QUORUMLOCK_HELD);
    quorumlock_mutex_free(left_alone);
    quorumlock_mutex_free(mutex);
    quorumlock_mutex_free(theirs);
    quorumlock_client_free(client);
    quorumlock_client_free(another);
}

/* -- observers ----------------------------------------------------------------------------------------------------- */

static void on_event(void *userdata, const quorumlock_event *event)
{
    journal *journal = userdata;
    quorumlock_kind kind = quorumlock_event_kind(event);
    CHECK(kind > 0 && kind < 32 && quorumlock_event_message(event).length > 0);
    CHECK(quorumlock_event_severity(event) != QUORUMLOCK_SEVERITY_NONE);
    CHECK((quorumlock_event_reason(event) != QUORUMLOCK_REASON_NONE) == (kind == QUORUMLOCK_EVENT_GAVE_UP));
    if (kind == QUORUMLOCK_EVENT_GAVE_UP) {
        CHECK(quorumlock_event_reason(event) == QUORUMLOCK_REASON_HELD && quorumlock_event_waited_us(event) > 0);
        CHECK(quorumlock_event_attempts(event) == 1 && !quorumlock_event_has_waited(event));
        CHECK(quorumlock_event_severity(event) == QUORUMLOCK_SEVERITY_DEBUG);
    } else if (kind == QUORUMLOCK_EVENT_ACQUIRED) {
        CHECK(quorumlock_event_attempts(event) == 1 && quorumlock_event_round_trips(event) == 1 && quorumlock_event_waited_us(event) > 0);
        CHECK(contains(quorumlock_event_name(event), "observed") && is(quorumlock_event_code(event), "acquired"));
    } else if (kind == QUORUMLOCK_EVENT_NODE_DOWN) {
        CHECK(quorumlock_event_address_count(event) == 1 && quorumlock_event_fault_count(event) == 1);
        CHECK(is(quorumlock_event_address(event, 0), "127.0.0.1:1") && quorumlock_event_address(event, 1).length == 0);
        CHECK(quorumlock_fault_cause(quorumlock_event_fault(event, 0)) == QUORUMLOCK_CAUSE_REFUSED);
        CHECK(quorumlock_event_fault(event, 1) == NULL && contains(quorumlock_event_message(event), "127.0.0.1:1"));
    } else if (kind == QUORUMLOCK_EVENT_EXTENDED) {
        CHECK(quorumlock_event_ttl_ms(event) == 20000 && !quorumlock_event_is_automatic(event));
        if (journal->guard != NULL) {
            /* The very guard that is being extended, in the thread that does. */
            journal->result = quorumlock_guard_unlock(journal->guard, NULL);
            journal->remaining = quorumlock_guard_remaining_ms(journal->guard);
            CHECK(quorumlock_guard_ensure(journal->guard, 5000, NULL) == QUORUMLOCK_OK);
            quorumlock_guard_free(journal->guard);
        }
    } else if (kind == QUORUMLOCK_EVENT_RELEASED) {
        CHECK(quorumlock_event_is_freed(event) == (journal->guard != NULL) && quorumlock_event_held_us(event) > 0);
    }
    pthread_mutex_lock(&journal->mutex);
    journal->events[kind]++;
    pthread_mutex_unlock(&journal->mutex);
}

/* Another observer of the same client. */
static void on_first_event(void *userdata, const quorumlock_event *event)
{
    journal *journal = userdata;
    quorumlock_kind kind = quorumlock_event_kind(event);
    CHECK(kind > 0 && kind < 32);
    pthread_mutex_lock(&journal->mutex);
    journal->events[kind]++;
    pthread_mutex_unlock(&journal->mutex);
}

static void observers_are_called_and_released(void)
{
    char *with_dead[9];
    quorumlock_config *config;
    quorumlock_client *client = NULL;
    quorumlock_mutex *mutex;
    quorumlock_guard *guard, *other = NULL;
    journal record, first;
    journal_init(&record);
    journal_init(&first);
    memcpy(with_dead, urls, (size_t)url_count * sizeof *urls);
    with_dead[url_count] = (char *)"redis://127.0.0.1:1";
    config = config_of(with_dead, url_count + 1);
    CHECK(quorumlock_config_add_observer(config, NULL, &first, on_release) == QUORUMLOCK_NULL_POINTER);
    CHECK(first.releases == 1);
    CHECK(quorumlock_config_add_observer(config, on_first_event, &first, on_release) == QUORUMLOCK_OK);
    CHECK(quorumlock_config_add_observer(config, on_event, &record, on_release) == QUORUMLOCK_OK);
    CHECK(first.releases == 1);
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    mutex = mutex_of(client, "observed");
    guard = take(mutex);
    CHECK(quorumlock_mutex_try_lock(mutex, &other, NULL) == QUORUMLOCK_HELD);
    MUST(quorumlock_guard_extend(guard, 20000, &error));
    MUST(quorumlock_guard_unlock(guard, &error));
    quorumlock_guard_free(guard);
    CHECK(record.events[QUORUMLOCK_EVENT_ACQUIRED] == 1 && record.events[QUORUMLOCK_EVENT_ATTEMPT_LOST] == 1);
    CHECK(record.events[QUORUMLOCK_EVENT_EXTENDED] == 1 && record.events[QUORUMLOCK_EVENT_RELEASED] == 1);
    CHECK(record.events[QUORUMLOCK_EVENT_GAVE_UP] == 1 && record.events[QUORUMLOCK_EVENT_WAITING] == 0);
    CHECK(record.events[QUORUMLOCK_EVENT_NODE_DOWN] == 1 && record.events[QUORUMLOCK_EVENT_NODE_UP] == url_count);

    /* A callback frees the guard in whose call it runs. The lock goes when that call is over. */
    record.guard = take(mutex);
    MUST(quorumlock_guard_extend(record.guard, 20000, &error));
    CHECK(record.result == QUORUMLOCK_BUSY && record.remaining > 5000);
    MUST(quorumlock_mutex_lock(mutex, 10000, NULL, &other, &error));
    CHECK(record.events[QUORUMLOCK_EVENT_RELEASED] == 2);
    record.guard = NULL;
    MUST(quorumlock_guard_unlock(other, &error));
    quorumlock_guard_free(other);
    quorumlock_mutex_free(mutex);
    CHECK(record.releases == 0 && first.releases == 1);
    quorumlock_client_free(client);
    CHECK(record.releases == 1 && first.releases == 2);
    CHECK(memcmp(record.events, first.events, sizeof record.events) == 0);
}

/* The last handle goes in a callback, on the client's own thread. */
static void free_guard(void *userdata)
{
    journal *journal = userdata;
    journal->other_result = (int)quorumlock_guard_unlock(journal->guard, NULL);
    quorumlock_guard_free(journal->guard);
}

static void a_callback_lets_the_last_handle_go(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "last");
    journal record;
    journal_init(&record);
    record.other_result = -1;
    /* Long enough for the first connections of the client, under valgrind. */
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 2000) == QUORUMLOCK_OK);
    record.guard = take(mutex);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    MUST(quorumlock_guard_on_lost(record.guard, free_guard, &record, on_release, &error));
    eventually(&record, &record.releases, 1);
    CHECK(record.other_result == QUORUMLOCK_EXPIRED);
    /* The thread ends by itself. */
    sleep_ms(100);
}

static void *shut_down(void *client)
{
    MUST(quorumlock_client_shutdown(client, 60000, &error));
    return NULL;
}

static void a_client_is_shut_down(void)
{
    quorumlock_client *client = client_of(urls, url_count);
    quorumlock_mutex *mutex = mutex_of(client, "ended");
    quorumlock_guard *guard = take(mutex), *other = NULL;
    quorumlock_error *error = NULL;
    pthread_t thread;
    CHECK(quorumlock_client_shutdown(client, 0, &error) == QUORUMLOCK_SHUTDOWN_INCOMPLETE);
    CHECK(quorumlock_error_result(error) == QUORUMLOCK_SHUTDOWN_INCOMPLETE);
    CHECK(is(quorumlock_error_message(error), "shutdown incomplete: still held: \"ended\""));
    CHECK(quorumlock_error_fault_count(error) == 0 && !quorumlock_error_is_permanent(error));
    quorumlock_error_free(error);
    error = NULL;
    CHECK(quorumlock_mutex_try_lock(mutex, &other, &error) == QUORUMLOCK_SHUT_DOWN && other == NULL);
    CHECK(quorumlock_error_is_permanent(error));
    quorumlock_error_free(error);
    error = NULL;
    CHECK(pthread_create(&thread, NULL, shut_down, client) == 0);
    MUST(quorumlock_guard_extend(guard, 30000, &error));
    MUST(quorumlock_guard_unlock(guard, &error));
    pthread_join(thread, NULL);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
}

/* Not on the main thread: Rust keeps a note of each thread that has waited, and frees that of the main thread never. */
static void *keep_all(void *unused)
{
    handles_go_in_any_order();
    a_guard_that_is_freed_releases();
    a_config_is_used_again();
    names_of_every_kind();
    outputs_are_left_alone();
    settings_that_cannot_be_used();
    the_environment_names_nodes();
    every_node_has_its_cause();
    waits_end_when_they_should();
    handles_outlive_the_calls_that_use_them();
    a_watchdog_is_switched_on_and_off();
    a_loss_is_told_to_event_loops_and_callbacks();
    numbers_grow_and_stay_known();
    a_lock_goes_to_another_client();
    observers_are_called_and_released();
    a_callback_lets_the_last_handle_go();
    a_client_is_shut_down();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    urls = arguments + 1;
    url_count = count - 1;
    CHECK(url_count == 3);
    CHECK(pthread_create(&thread, NULL, keep_all, NULL) == 0);
    pthread_join(thread, NULL);
    puts("all kept");
    return 0;
}
