/* A thread that waits for a lock, and is cancelled by pthread_cancel meanwhile: the call returns as if nothing had
 * happened, the thread ends after it, and the process lives.
 *
 * cancel URL... */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 4, WAIT_MS = 600 };

typedef struct waiter {
    quorumlock_client *client;
    /* Whether the lock is released while the thread waits. */
    int wins;
    const char *name;
    quorumlock_result result;
    int has_returned, has_gone_on, is_cleaned_up;
} waiter;

static void pause_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    CHECK(nanosleep(&time, NULL) == 0);
}

static void free_guard(void *place)
{
    quorumlock_guard **guard = place;
    quorumlock_guard_free(*guard);
    *guard = NULL;
}

static void clean_up(void *argument)
{
    ((waiter *)argument)->is_cleaned_up = 1;
}

static void *wait_for_lock(void *argument)
{
    waiter *self = argument;
    quorumlock_mutex *mutex = mutex_of(self->client, self->name);
    quorumlock_guard *guard = NULL;
    int pauses;
    pthread_cleanup_push(clean_up, self);
    pthread_cleanup_push(free_guard, &guard);
    self->result = self->wins ? quorumlock_mutex_lock(mutex, -1, NULL, &guard, NULL)
                              : quorumlock_mutex_lock(mutex, WAIT_MS, NULL, &guard, NULL);
    self->has_returned = 1;
    quorumlock_mutex_free(mutex);
    /* Cancellation points. On a busy machine the call may have returned before the request was made. */
    for (pauses = 0; pauses < 1000; pauses++) {
        pause_ms(10);
    }
    self->has_gone_on = 1;
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(0);
    return NULL;
}

/* Threads that wait in the queue and at the servers, and are all cancelled. */
static void cancel_waiting_threads(quorumlock_client *client, quorumlock_client *holder, int wins)
{
    waiter waiters[THREADS];
    pthread_t threads[THREADS];
    const char *name = wins ? "won" : "held";
    quorumlock_mutex *mutex = mutex_of(holder, name);
    quorumlock_guard *guard = take(mutex);
    void *value;
    int index;
    memset(waiters, 0, sizeof waiters);
    for (index = 0; index < THREADS; index++) {
        waiters[index].client = client;
        waiters[index].wins = wins;
        waiters[index].name = name;
        CHECK(pthread_create(&threads[index], NULL, wait_for_lock, &waiters[index]) == 0);
    }
    pause_ms(WAIT_MS / 3);
    for (index = 0; index < THREADS; index++) {
        CHECK(pthread_cancel(threads[index]) == 0);
    }
    if (wins) {
        CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    }
    for (index = 0; index < THREADS; index++) {
        CHECK(pthread_join(threads[index], &value) == 0);
        CHECK(value == PTHREAD_CANCELED);
        CHECK(waiters[index].has_returned && !waiters[index].has_gone_on && waiters[index].is_cleaned_up);
        /* On a busy machine no node may have answered in this time. */
        CHECK(waiters[index].result == (wins ? QUORUMLOCK_OK : QUORUMLOCK_HELD)
            || (!wins && waiters[index].result == QUORUMLOCK_UNAVAILABLE));
    }
    if (!wins) {
        CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    }
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1), *holder = client_of(arguments + 1, count - 1);
    quorumlock_mutex *mutex;
    quorumlock_guard *guard;
    cancel_waiting_threads(client, holder, 0);
    cancel_waiting_threads(client, holder, 1);
    /* The client works as before. */
    mutex = mutex_of(client, "won");
    guard = take(mutex);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    quorumlock_client_free(holder);
    printf("alive\n");
    return 0;
}
