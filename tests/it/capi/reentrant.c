/* Reentrant locks: threads and objects as owners, levels that end in any order and on any thread, an owner that is in
 * use. A thread that waits for its own plain lock.
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
        self->locked = quorumlock_mutex_lock(self->mutex, WAIT_MS, NULL, &guard, NULL);
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
    /* Others share the lock: that ends the level, and gives no lease. */
    CHECK(quorumlock_guard_detach(levels[0], &lease, &error) == QUORUMLOCK_CONFIG && lease == NULL);
    quorumlock_error_free(error);
    error = NULL;
    CHECK(quorumlock_guard_ensure(levels[0], 1000, NULL) == QUORUMLOCK_NOT_HELD);
    quorumlock_guard_free(levels[0]);
    levels[0] = take(mutex);
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
        if (result == QUORUMLOCK_BUSY) {
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

/* The waits of this thread, each of which ends when it has begun, and those for itself. */
typedef struct waits {
    quorumlock_cancel_handle *cancel;
    int all, own;
} waits;

static void note_wait(void *userdata, const quorumlock_event *event)
{
    waits *seen = userdata;
    if (quorumlock_event_kind(event) == QUORUMLOCK_EVENT_WAITING) {
        seen->all++;
        quorumlock_cancel_handle_cancel(seen->cancel);
    } else if (quorumlock_event_kind(event) == QUORUMLOCK_EVENT_WAITING_FOR_ITSELF) {
        seen->own++;
        CHECK(is(quorumlock_event_name(event), "mine") && contains(quorumlock_event_message(event), "\"mine\""));
        CHECK(quorumlock_event_remaining_ms(event) > 5000 && quorumlock_event_remaining_ms(event) < 10000);
        CHECK(quorumlock_event_severity(event) == QUORUMLOCK_SEVERITY_WARNING);
    }
}

static void wait_for(const quorumlock_mutex *mutex, waits *seen)
{
    quorumlock_guard *none = NULL;
    seen->cancel = quorumlock_cancel_handle_new();
    CHECK(quorumlock_mutex_lock(mutex, -1, seen->cancel, &none, NULL) == QUORUMLOCK_CANCELLED && none == NULL);
    quorumlock_cancel_handle_free(seen->cancel);
}

static void thread_that_waits_for_itself_is_an_event(char **urls, int count)
{
    waits seen = { NULL, 0, 0 };
    quorumlock_config *config = config_of(urls, count);
    quorumlock_client *client = NULL;
    quorumlock_mutex *plain, *reentrant;
    quorumlock_owner *owner = quorumlock_owner_new();
    quorumlock_guard *guard;
    CHECK(quorumlock_config_add_observer(config, note_wait, &seen, NULL) == QUORUMLOCK_OK);
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    plain = mutex_of(client, "mine");
    reentrant = mutex_of(client, "mine");
    CHECK(quorumlock_mutex_set_reentrant(reentrant, NULL) == QUORUMLOCK_OK);
    guard = take(plain);
    wait_for(plain, &seen);
    wait_for(reentrant, &seen);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK && seen.all == 2 && seen.own == 2);
    quorumlock_guard_free(guard);
    guard = take(reentrant);
    wait_for(plain, &seen);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK && seen.all == 3 && seen.own == 3);
    quorumlock_guard_free(guard);
    /* An object may be served by another thread next. */
    CHECK(quorumlock_mutex_set_reentrant(reentrant, owner) == QUORUMLOCK_OK);
    guard = take(reentrant);
    wait_for(plain, &seen);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK && seen.all == 4 && seen.own == 3);
    quorumlock_guard_free(guard);
    quorumlock_owner_free(owner);
    quorumlock_mutex_free(plain);
    quorumlock_mutex_free(reentrant);
    quorumlock_client_free(client);
}

static void note_reason(void *userdata, const quorumlock_event *event)
{
    if (quorumlock_event_kind(event) == QUORUMLOCK_EVENT_GAVE_UP) {
        *(quorumlock_reason *)userdata = quorumlock_event_reason(event);
    }
}

static void one_attempt_finds_the_lock_held(char **urls, int count)
{
    quorumlock_reason reason = QUORUMLOCK_REASON_NONE;
    quorumlock_config *config = config_of(urls, count);
    quorumlock_client *client = NULL;
    quorumlock_mutex *plain, *reentrant;
    quorumlock_owner *owner = quorumlock_owner_new();
    quorumlock_guard *guard, *none = NULL;
    int is_fenced, has_object;
    CHECK(quorumlock_config_add_observer(config, note_reason, &reason, NULL) == QUORUMLOCK_OK);
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    for (is_fenced = 0; is_fenced < 2; is_fenced++) {
        int kind = is_fenced ? QUORUMLOCK_LOCK_FENCED : QUORUMLOCK_LOCK_PLAIN;
        plain = mutex_of_kind(client, is_fenced ? "fenced attempt" : "attempt", kind);
        reentrant = mutex_of_kind(client, is_fenced ? "fenced attempt" : "attempt", kind);
        guard = take(plain);
        for (has_object = 0; has_object < 2; has_object++) {
            CHECK(quorumlock_mutex_set_reentrant(reentrant, has_object ? owner : NULL) == QUORUMLOCK_OK);
            CHECK(quorumlock_mutex_try_lock(reentrant, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
            CHECK(reason == QUORUMLOCK_REASON_HELD);
            reason = QUORUMLOCK_REASON_NONE;
        }
        quorumlock_guard_free(guard);
        quorumlock_mutex_free(plain);
        quorumlock_mutex_free(reentrant);
    }
    quorumlock_owner_free(owner);
    quorumlock_client_free(client);
}

static void attached_lease_is_no_level(const quorumlock_client *client)
{
    int is_fenced;
    for (is_fenced = 0; is_fenced < 2; is_fenced++) {
        int kind = is_fenced ? QUORUMLOCK_LOCK_FENCED : QUORUMLOCK_LOCK_PLAIN;
        quorumlock_mutex *mutex = mutex_of_kind(client, "attached", kind);
        quorumlock_guard *guard, *none = NULL;
        quorumlock_lease *lease = NULL;
        CHECK(quorumlock_mutex_set_reentrant(mutex, NULL) == QUORUMLOCK_OK);
        guard = take(mutex);
        MUST(quorumlock_guard_detach(guard, &lease, &error));
        quorumlock_guard_free(guard);
        MUST(quorumlock_mutex_attach(mutex, lease, &guard, &error));
        quorumlock_lease_free(lease);
        CHECK(quorumlock_mutex_try_lock(mutex, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
        CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
        quorumlock_guard_free(guard);
        quorumlock_mutex_free(mutex);
    }
}

int main(int argc, char **argv)
{
    quorumlock_client *client = client_of(argv + 1, argc - 1);
    thread_is_the_owner(client);
    object_is_the_owner(client);
    attached_lease_is_no_level(client);
    quorumlock_client_free(client);
    thread_that_waits_for_itself_is_an_event(argv + 1, argc - 1);
    one_attempt_finds_the_lock_held(argv + 1, argc - 1);
    puts("all kept");
    return 0;
}
