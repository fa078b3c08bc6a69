/* Locks to read and to write: which excludes which, the way from one to the other, leases, and what such a mutex cannot
 * be.
 *
 * read_write URL... */
#include "check.h"
#include <poll.h>

static quorumlock_mutex *mutex_for(const quorumlock_client *client, const char *name, int access)
{
    quorumlock_mutex *mutex = mutex_of(client, name);
    CHECK(quorumlock_mutex_set_access(mutex, access) == QUORUMLOCK_OK);
    return mutex;
}

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
    quorumlock_mutex *read = mutex_for(client, "shared", QUORUMLOCK_ACCESS_READ);
    quorumlock_mutex *theirs = mutex_for(other, "shared", QUORUMLOCK_ACCESS_READ);
    quorumlock_mutex *write = mutex_for(other, "shared", QUORUMLOCK_ACCESS_WRITE), *plain = mutex_of(other, "shared");
    quorumlock_guard *one = take(read), *two = take(read), *three = take(theirs);
    quorumlock_lease *lease = NULL;
    quorumlock_error *error = NULL;
    CHECK(is(quorumlock_guard_name(one), "shared") && quorumlock_guard_fencing_token(one) == 0);
    CHECK(tried(write) == QUORUMLOCK_HELD && tried(plain) == QUORUMLOCK_OK);
    MUST(quorumlock_guard_extend(one, 30000, &error));
    CHECK(quorumlock_guard_remaining_ms(two) > 20000);
    CHECK(quorumlock_guard_detach(one, &lease, &error) == QUORUMLOCK_CONFIG && lease == NULL);
    quorumlock_error_free(error);
    CHECK(quorumlock_guard_downgrade(one, NULL) == QUORUMLOCK_CONFIG);
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
    quorumlock_mutex *write = mutex_for(client, "down", QUORUMLOCK_ACCESS_WRITE);
    quorumlock_mutex *read = mutex_for(other, "down", QUORUMLOCK_ACCESS_READ);
    quorumlock_guard *guard;
    struct pollfd lost;
    int calls = 0, counts = 0;
    CHECK(quorumlock_mutex_set_ttl_ms(write, 600) == QUORUMLOCK_OK);
    guard = take(write);
    MUST(quorumlock_guard_lost_fd(guard, &lost.fd, &error));
    MUST(quorumlock_guard_on_lost(guard, called, &calls, NULL, &error));
    MUST(quorumlock_guard_on_lost(guard, called, &counts, called, &error));
    CHECK(tried(read) == QUORUMLOCK_HELD);
    MUST(quorumlock_guard_downgrade(guard, &error));
    CHECK(counts == 1 && calls == 0);
    CHECK(tried(read) == QUORUMLOCK_OK);
    /* The descriptor is that of the guard. */
    lost.events = POLLIN;
    CHECK(poll(&lost, 1, 10000) == 1);
    CHECK(quorumlock_guard_remaining_ms(guard) == 0);
    quorumlock_guard_free(guard);
    /* One that has ended is lost. */
    CHECK(quorumlock_mutex_set_ttl_ms(write, 30) == QUORUMLOCK_OK);
    guard = take(write);
    CHECK(poll(NULL, 0, 60) == 0);
    CHECK(quorumlock_guard_downgrade(guard, NULL) == QUORUMLOCK_LEASE_LOST);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_NOT_HELD);
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(write);
    quorumlock_mutex_free(read);
}

static void what_it_cannot_be(const quorumlock_client *client)
{
    quorumlock_mutex *mutex = mutex_for(client, "other", QUORUMLOCK_ACCESS_READ);
    quorumlock_holder *holder = NULL;
    quorumlock_error *error = NULL;
    CHECK(quorumlock_mutex_set_access(mutex, 3) == QUORUMLOCK_INVALID_ARGUMENT);
    CHECK(quorumlock_mutex_set_access(mutex, -1) == QUORUMLOCK_INVALID_ARGUMENT);
    CHECK(quorumlock_mutex_holder(mutex, &holder, &error) == QUORUMLOCK_CONFIG && holder == NULL);
    quorumlock_error_free(error);
    CHECK(quorumlock_mutex_set_fenced(mutex, 1) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_fenced(mutex, 0) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_at_least_ms(mutex, 5) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_at_least_ms(mutex, 0) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_access(mutex, QUORUMLOCK_ACCESS_ALONE) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_holder(mutex, &holder, NULL) == QUORUMLOCK_NOT_HELD);
    CHECK(quorumlock_mutex_set_access(mutex, QUORUMLOCK_ACCESS_WRITE) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_reentrant(mutex, NULL) == QUORUMLOCK_OK && tried(mutex) == QUORUMLOCK_CONFIG);
    quorumlock_mutex_free(mutex);
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1), *other = client_of(arguments + 1, count - 1);
    readers_share(client, other);
    a_writer_becomes_a_reader(client, other);
    what_it_cannot_be(client);
    quorumlock_client_free(client);
    quorumlock_client_free(other);
    puts("all kept");
    return 0;
}
