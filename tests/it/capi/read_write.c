/* Locks to read and to write: which excludes which, the way from one to the other, leases, the numbers of writers, and
 * what such a mutex cannot be.
 *
 * read_write URL... */
#include "check.h"
#include <poll.h>

static quorumlock_result tried(const quorumlock_mutex *mutex)
{
    quorumlock_guard *guard = NULL;
    quorumlock_result result = quorumlock_mutex_try_lock(mutex, &guard, NULL);
    CHECK((guard != NULL) == (result == QUORUMLOCK_OK));
    if (guard != NULL) {
        CHECK(quorumlock_guard_unlock(guard, NULL) != QUORUMLOCK_NOT_HELD);
    }
    quorumlock_guard_free(guard);
    return result;
}

static void readers_share(const quorumlock_client *client, const quorumlock_client *other)
{
    quorumlock_mutex *read = mutex_of_kind(client, "shared", QUORUMLOCK_LOCK_READ);
    quorumlock_mutex *theirs = mutex_of_kind(other, "shared", QUORUMLOCK_LOCK_READ);
    quorumlock_mutex *write = mutex_of_kind(other, "shared", QUORUMLOCK_LOCK_WRITE), *plain = mutex_of(other, "shared");
    quorumlock_guard *one = take(read), *two = take(read), *three = take(theirs);
    quorumlock_lease *lease = NULL;
    quorumlock_error *error = NULL;
    CHECK(is(quorumlock_guard_name(one), "shared") && quorumlock_guard_fencing_token(one) == 0);
    CHECK(tried(write) == QUORUMLOCK_HELD && tried(plain) == QUORUMLOCK_OK);
    MUST(quorumlock_guard_extend(one, 30000, &error));
    CHECK(quorumlock_guard_remaining_ms(two) > 20000);
    CHECK(quorumlock_guard_downgrade(one, NULL) == QUORUMLOCK_CONFIG);
    /* Another thread may share the lock: that ends the share, and gives no lease. */
    CHECK(quorumlock_guard_detach(one, &lease, &error) == QUORUMLOCK_CONFIG && lease == NULL);
    quorumlock_error_free(error);
    error = NULL;
    quorumlock_guard_free(one);
    one = take(read);
    CHECK(quorumlock_guard_unlock(one, NULL) == QUORUMLOCK_STILL_HELD);
    CHECK(quorumlock_guard_downgrade(one, NULL) == QUORUMLOCK_NOT_HELD);
    CHECK(quorumlock_guard_unlock(two, NULL) == QUORUMLOCK_OK && tried(write) == QUORUMLOCK_HELD);
    MUST(quorumlock_guard_detach(three, &lease, &error));
    quorumlock_guard_free(three);
    /* As a reader's, and no other. The lease is used up. */
    CHECK(quorumlock_mutex_attach(read, lease, &three, NULL) == QUORUMLOCK_OK);
    quorumlock_lease_free(lease);
    CHECK(tried(write) == QUORUMLOCK_HELD && quorumlock_guard_unlock(three, NULL) == QUORUMLOCK_OK);
    CHECK(tried(write) == QUORUMLOCK_OK);
    quorumlock_guard_free(one);
    quorumlock_guard_free(two);
    quorumlock_guard_free(three);
    quorumlock_mutex_free(read);
    quorumlock_mutex_free(theirs);
    quorumlock_mutex_free(write);
    quorumlock_mutex_free(plain);
}

static void called(void *userdata)
{
    ++*(int *)userdata;
}

static void a_writer_becomes_a_reader(const quorumlock_client *client, const quorumlock_client *other)
{
    quorumlock_mutex *write = mutex_of_kind(client, "down", QUORUMLOCK_LOCK_WRITE);
    quorumlock_mutex *read = mutex_of_kind(other, "down", QUORUMLOCK_LOCK_READ);
    quorumlock_guard *guard = take(write);
    int calls = 0, counts = 0;
    MUST(quorumlock_guard_on_lost(guard, called, &calls, NULL, &error));
    MUST(quorumlock_guard_on_lost(guard, called, &counts, called, &error));
    CHECK(tried(read) == QUORUMLOCK_HELD);
    MUST(quorumlock_guard_downgrade(guard, &error));
    CHECK(counts == 1 && calls == 0);
    CHECK(tried(read) == QUORUMLOCK_OK);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(write);
    quorumlock_mutex_free(read);
}

/* A lock to write that ends soon. A machine that stands still meanwhile may need another attempt. */
static quorumlock_guard *take_for_a_moment(const quorumlock_mutex *write)
{
    quorumlock_guard *guard = NULL;
    int attempts = 0;
    while (quorumlock_mutex_lock(write, 10000, NULL, &guard, NULL) != QUORUMLOCK_OK) {
        CHECK(++attempts < 5);
    }
    return guard;
}

static void a_downgrade_ends_as_its_lease_does(const quorumlock_client *client)
{
    quorumlock_mutex *write = mutex_of_kind(client, "end", QUORUMLOCK_LOCK_WRITE);
    quorumlock_guard *guard;
    quorumlock_result result;
    struct pollfd lost;
    int attempts = 0;
    CHECK(quorumlock_mutex_set_ttl_ms(write, 600) == QUORUMLOCK_OK);
    /* The descriptor is that of the guard. */
    for (;;) {
        guard = take_for_a_moment(write);
        MUST(quorumlock_guard_lost_fd(guard, &lost.fd, &error));
        result = quorumlock_guard_downgrade(guard, NULL);
        if (result == QUORUMLOCK_OK) {
            break;
        }
        CHECK(result == QUORUMLOCK_LEASE_LOST && ++attempts < 5);
        quorumlock_guard_free(guard);
    }
    lost.events = POLLIN;
    CHECK(poll(&lost, 1, 10000) == 1);
    CHECK(quorumlock_guard_remaining_ms(guard) == 0);
    quorumlock_guard_free(guard);
    /* One that has ended is lost. */
    guard = take_for_a_moment(write);
    while (quorumlock_guard_remaining_ms(guard) > 0) {
        CHECK(poll(NULL, 0, 10) == 0);
    }
    CHECK(poll(NULL, 0, 10) == 0);
    CHECK(quorumlock_guard_downgrade(guard, NULL) == QUORUMLOCK_LEASE_LOST);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_NOT_HELD);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(write);
}

/* What comes of the lease of this text. */
static quorumlock_result attached(const quorumlock_mutex *mutex, const quorumlock_secret *text, quorumlock_guard **guard)
{
    quorumlock_str words = quorumlock_secret_text(text);
    quorumlock_lease *lease = NULL;
    quorumlock_result result;
    MUST(quorumlock_lease_from_text(words.data, words.length, &lease, &error));
    result = quorumlock_mutex_attach(mutex, lease, guard, NULL);
    CHECK((*guard != NULL) == (result == QUORUMLOCK_OK));
    quorumlock_lease_free(lease);
    return result;
}

/* The guard's lease as text. The guard is freed. */
static quorumlock_secret *text_of(quorumlock_guard *guard, uint64_t number)
{
    quorumlock_lease *lease = NULL;
    quorumlock_secret *text = NULL;
    MUST(quorumlock_guard_detach(guard, &lease, &error));
    CHECK(quorumlock_lease_fencing_token(lease) == number && quorumlock_guard_fencing_token(guard) == number);
    MUST(quorumlock_lease_into_text(lease, &text, &error));
    quorumlock_lease_free(lease);
    quorumlock_guard_free(guard);
    return text;
}

static void a_downgrade_that_finds_no_key_is_a_loss(const quorumlock_client *client)
{
    quorumlock_mutex *write = mutex_of_kind(client, "gone", QUORUMLOCK_LOCK_WRITE);
    quorumlock_secret *text = text_of(take(write), 0);
    quorumlock_guard *guard, *other;
    struct pollfd lost = {.events = POLLIN};
    CHECK(attached(write, text, &guard) == QUORUMLOCK_OK && attached(write, text, &other) == QUORUMLOCK_OK);
    quorumlock_secret_free(text);
    MUST(quorumlock_guard_lost_fd(guard, &lost.fd, &error));
    CHECK(quorumlock_guard_unlock(other, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(other);
    CHECK(quorumlock_guard_downgrade(guard, NULL) == QUORUMLOCK_LEASE_LOST);
    CHECK(poll(&lost, 1, 0) == 1);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(write);
}

static void writers_have_numbers_that_grow(const quorumlock_client *client, const quorumlock_client *other)
{
    quorumlock_mutex *write = mutex_of_kind(client, "numbers", QUORUMLOCK_LOCK_FENCED_WRITE);
    quorumlock_mutex *theirs = mutex_of_kind(other, "numbers", QUORUMLOCK_LOCK_FENCED_WRITE);
    quorumlock_mutex *read = mutex_of_kind(other, "numbers", QUORUMLOCK_LOCK_READ);
    quorumlock_mutex *alone = mutex_of_kind(other, "numbers", QUORUMLOCK_LOCK_FENCED);
    quorumlock_mutex *without = mutex_of_kind(other, "numbers", QUORUMLOCK_LOCK_WRITE);
    quorumlock_guard *guard = take(write), *none = NULL;
    quorumlock_secret *text;
    uint64_t first = quorumlock_guard_fencing_token(guard), second;
    /* One lock with numbers and without, and another one than that of a single kind of holder. */
    CHECK(first > 0 && tried(without) == QUORUMLOCK_HELD && tried(read) == QUORUMLOCK_HELD);
    CHECK(tried(alone) == QUORUMLOCK_OK);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK && quorumlock_guard_fencing_token(guard) == first);
    quorumlock_guard_free(guard);
    guard = take(read);
    CHECK(quorumlock_guard_fencing_token(guard) == 0 && quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    CHECK(tried(without) == QUORUMLOCK_OK);
    guard = take(theirs);
    second = quorumlock_guard_fencing_token(guard);
    CHECK(second > first);
    /* The lease has the number, and is for a writer with one. */
    text = text_of(guard, second);
    CHECK(attached(without, text, &none) == QUORUMLOCK_CONFIG && attached(read, text, &none) == QUORUMLOCK_CONFIG);
    CHECK(attached(alone, text, &none) == QUORUMLOCK_CONFIG && attached(write, text, &guard) == QUORUMLOCK_OK);
    quorumlock_secret_free(text);
    CHECK(quorumlock_guard_fencing_token(guard) == second);
    MUST(quorumlock_guard_extend(guard, 30000, &error));
    /* A reader has none. */
    MUST(quorumlock_guard_downgrade(guard, &error));
    CHECK(quorumlock_guard_fencing_token(guard) == 0 && tried(read) == QUORUMLOCK_OK);
    text = text_of(guard, 0);
    CHECK(attached(write, text, &none) == QUORUMLOCK_CONFIG && attached(read, text, &guard) == QUORUMLOCK_OK);
    quorumlock_secret_free(text);
    CHECK(quorumlock_guard_fencing_token(guard) == 0 && quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    guard = take(write);
    CHECK(quorumlock_guard_fencing_token(guard) > second && quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    /* A writer without a number has a lease of its own kind. */
    text = text_of(take(without), 0);
    CHECK(attached(write, text, &none) == QUORUMLOCK_CONFIG && attached(without, text, &guard) == QUORUMLOCK_OK);
    quorumlock_secret_free(text);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(write);
    quorumlock_mutex_free(theirs);
    quorumlock_mutex_free(read);
    quorumlock_mutex_free(alone);
    quorumlock_mutex_free(without);
}

static void what_it_cannot_be(const quorumlock_client *client)
{
    static const int numbers[] = { -1, 5 };
    quorumlock_mutex *mutex = NULL;
    quorumlock_holder *holder = NULL;
    quorumlock_error *error = NULL;
    int index;
    for (index = 0; index < 2; index++) {
        CHECK(quorumlock_client_mutex(client, "other", 5, numbers[index], &mutex) == QUORUMLOCK_INVALID_ARGUMENT);
        CHECK(mutex == NULL);
    }
    mutex = mutex_of_kind(client, "other", QUORUMLOCK_LOCK_READ);
    CHECK(quorumlock_mutex_holder(mutex, &holder, &error) == QUORUMLOCK_CONFIG && holder == NULL);
    quorumlock_error_free(error);
    CHECK(quorumlock_mutex_set_fair(mutex, 1) == QUORUMLOCK_CONFIG && tried(mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_reentrant(mutex, NULL) == QUORUMLOCK_CONFIG && tried(mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_min_hold_ms(mutex, 5) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_min_hold_ms(mutex, 0) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_OK);
    quorumlock_mutex_free(mutex);
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1), *other = client_of(arguments + 1, count - 1);
    readers_share(client, other);
    a_writer_becomes_a_reader(client, other);
    a_downgrade_ends_as_its_lease_does(client);
    a_downgrade_that_finds_no_key_is_a_loss(client);
    writers_have_numbers_that_grow(client, other);
    what_it_cannot_be(client);
    quorumlock_client_free(client);
    quorumlock_client_free(other);
    puts("all kept");
    return 0;
}
