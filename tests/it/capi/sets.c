/* Sets of resources: all of them or none, beside mutexes of one resource, and what a set cannot be.
 *
 * sets URL... */
#include "check.h"

static quorumlock_mutex *set_of(const quorumlock_client *client, const quorumlock_str *names, size_t count)
{
    quorumlock_mutex *mutex = NULL;
    CHECK(quorumlock_client_mutex_set(client, names, count, &mutex) == QUORUMLOCK_OK);
    return mutex;
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1);
    const quorumlock_str names[] = { { "b", 1 }, { "a", 1 }, { "b", 1 } }, damaged[] = { { "a", 1 }, { "\xff", 1 } };
    quorumlock_mutex *set, *single, *other;
    quorumlock_guard *guard, *none = NULL;
    quorumlock_lease *lease = NULL;
    quorumlock_holder *holder = NULL;

    set = set_of(client, names, 3);
    single = mutex_of(client, "b");
    CHECK(is(quorumlock_mutex_name(set), "a, b"));
    CHECK(quorumlock_mutex_set_ttl_ms(set, 30000) == QUORUMLOCK_OK);
    guard = take(set);
    CHECK(is(quorumlock_guard_name(guard), "a, b") && quorumlock_guard_remaining_ms(guard) > 20000);
    CHECK(quorumlock_mutex_try_lock(single, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    MUST(quorumlock_guard_extend(guard, 20000, &error));

    /* Its lease is for a mutex of the same names. */
    MUST(quorumlock_guard_detach(guard, &lease, &error));
    quorumlock_guard_free(guard);
    CHECK(is(quorumlock_lease_key(lease), "a"));
    MUST(quorumlock_mutex_attach(set, lease, &guard, &error));
    quorumlock_lease_free(lease);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    guard = take(single);
    CHECK(quorumlock_mutex_try_lock(set, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    quorumlock_guard_free(guard);
    guard = take(set);
    quorumlock_guard_free(guard);

    is_refused(set_of(client, names, 0));
    other = set_of(client, names, 2);
    CHECK(quorumlock_mutex_set_fair(other, 1) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_reentrant(other, NULL) == QUORUMLOCK_CONFIG);
    quorumlock_guard_free(take(other));
    quorumlock_mutex_free(other);
    CHECK(quorumlock_mutex_holder(set, &holder, NULL) == QUORUMLOCK_CONFIG && holder == NULL);
    other = NULL;
    CHECK(quorumlock_client_mutex_set(client, damaged, 2, &other) == QUORUMLOCK_NOT_UTF8);
    CHECK(quorumlock_client_mutex_set(client, names, (size_t)-1, &other) == QUORUMLOCK_TOO_LONG && other == NULL);

    quorumlock_mutex_free(single);
    quorumlock_mutex_free(set);
    quorumlock_client_free(client);
    puts("all kept");
    return 0;
}
