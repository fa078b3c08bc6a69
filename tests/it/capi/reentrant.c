/* Reentrant locks: threads and objects as owners, levels that end in any order and on any thread, an owner that is in
 * use.
 *
 * reentrant URL... */
#include "check.h"
#include <pthread.h>

enum { LEVELS = 5, WAIT_MS = 300 };

typedef struct other_thread {
    const quorumlock_mutex *mutex;
    quorumlock_guard *level;
    quorumlock_result locked, unlocked;
} other_thread;

/* Takes the lock, and ends the level that it was given. */
static void *work(void *argument)
{
    other_thread *self = argument;
    quorumlock_guard *guard = NULL;
    do {
        self->locked = quorumlock_mutex_lock_timeout(self->mutex, WAIT_MS, NULL, &guard, NULL);
    } while (self->locked == QUORUMLOCK_BUSY);
    quorumlock_guard_free(guard);
    if (self->level != NULL) {
        self->unlocked = quorumlock_guard_unlock(self->level, NULL);
        quorumlock_guard_free(self->level);
    }
    return NULL;
}

static void thread_is_the_owner(const quorumlock_client *client)
{
    quorumlock_mutex *mutex = mutex_of(client, "thread"), *plain = mutex_of(client, "thread");
    quorumlock_guard *levels[LEVELS], *none = NULL;
    quorumlock_lease *lease = NULL;
    quorumlock_error *error = NULL;
    other_thread other = { mutex, NULL, QUORUMLOCK_OK, QUORUMLOCK_OK };
    pthread_t thread;
    int index;
    CHECK(quorumlock_mutex_set_reentrant(mutex, NULL) == QUORUMLOCK_OK);
    for (index = 0; index < LEVELS; index++) {
        levels[index] = take(mutex);
        CHECK(is(quorumlock_guard_name(levels[index]), "thread"));
    }
    CHECK(quorumlock_mutex_try_lock(plain, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    /* A level has no lease of its own, and stays. */
    CHECK(quorumlock_guard_detach(levels[0], &lease, &error) == QUORUMLOCK_CONFIG && lease == NULL);
    quorumlock_error_free(error);
    MUST(quorumlock_guard_ensure(levels[0], 1000, &error));
    MUST(quorumlock_guard_extend(levels[2], 30000, &error));
    CHECK(quorumlock_guard_remaining_ms(levels[1]) > 20000);
    /* Another thread is another owner, and may end a level. */
    other.level = levels[3];
    CHECK(pthread_create(&thread, NULL, work, &other) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(other.locked == QUORUMLOCK_HELD && other.unlocked == QUORUMLOCK_STILL_HELD);
    for (index = 0; index < 3; index++) {
        CHECK(quorumlock_guard_unlock(levels[index], NULL) == QUORUMLOCK_STILL_HELD);
        CHECK(quorumlock_guard_unlock(levels[index], NULL) == QUORUMLOCK_NOT_HELD);
        quorumlock_guard_free(levels[index]);
    }
    CHECK(quorumlock_guard_unlock(levels[4], NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(levels[4]);
    quorumlock_mutex_free(mutex);
    quorumlock_mutex_free(plain);
}

static void object_is_the_owner(const quorumlock_client *client)
{
    quorumlock_owner *owner = quorumlock_owner_new();
    quorumlock_mutex *mutex = mutex_of(client, "object"), *others = mutex_of(client, "held by others");
    quorumlock_guard *level, *last, *held, *none = NULL;
    other_thread other = { mutex, NULL, QUORUMLOCK_HELD, QUORUMLOCK_OK };
    quorumlock_result result;
    pthread_t thread;
    int tries;
    CHECK(owner != NULL);
    CHECK(quorumlock_mutex_set_reentrant(mutex, owner) == QUORUMLOCK_OK);
    level = take(mutex);
    /* It moves to another thread, and comes back. */
    CHECK(pthread_create(&thread, NULL, work, &other) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(other.locked == QUORUMLOCK_OK);
    last = take(mutex);
    CHECK(quorumlock_guard_unlock(level, NULL) == QUORUMLOCK_STILL_HELD);
    CHECK(quorumlock_guard_unlock(last, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(level);
    quorumlock_guard_free(last);

    /* While another thread waits with it, it is in use. */
    held = take(others);
    CHECK(quorumlock_mutex_set_reentrant(others, owner) == QUORUMLOCK_OK);
    other.mutex = others;
    CHECK(pthread_create(&thread, NULL, work, &other) == 0);
    for (tries = 0; tries < 10000; tries++) {
        result = quorumlock_mutex_try_lock(mutex, &none, NULL);
        if (result != QUORUMLOCK_OK) {
            break;
        }
        quorumlock_guard_free(none);
        none = NULL;
    }
    CHECK(result == QUORUMLOCK_BUSY && none == NULL);
    CHECK(pthread_join(thread, NULL) == 0 && other.locked == QUORUMLOCK_HELD);
    quorumlock_guard_free(held);
    /* The mutexes keep it. */
    quorumlock_owner_free(owner);
    quorumlock_guard_free(take(mutex));
    quorumlock_mutex_free(mutex);
    quorumlock_mutex_free(others);
}

int main(int argc, char **argv)
{
    quorumlock_client *client = client_of(argv + 1, argc - 1);
    thread_is_the_owner(client);
    object_is_the_owner(client);
    quorumlock_client_free(client);
    puts("all kept");
    return 0;
}
