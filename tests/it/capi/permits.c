/* Permits: a mutex that so many hold at once, which permit each has, and what a semaphore cannot be.
 *
 * permits URL... */
#include "check.h"

static quorumlock_mutex *permits_of(const quorumlock_client *client, size_t permits)
{
    quorumlock_mutex *mutex = NULL;
    CHECK(quorumlock_client_semaphore(client, "doors", 5, permits, &mutex) == QUORUMLOCK_OK && mutex != NULL);
    return mutex;
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1);
    quorumlock_mutex *doors = permits_of(client, 2), *slot = mutex_of(client, "doors#0"), *other;
    quorumlock_guard *first, *second, *none = NULL;
    quorumlock_lease *lease = NULL;
    quorumlock_holder *holder = NULL;

    CHECK(is(quorumlock_mutex_name(doors), "doors"));
    CHECK(quorumlock_mutex_set_ttl_ms(doors, 30000) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_watchdog(doors, 1) == QUORUMLOCK_OK);
    first = take(doors);
    second = take(doors);
    CHECK(quorumlock_guard_slot(first) + quorumlock_guard_slot(second) == 1);
    CHECK(is(quorumlock_guard_name(first), quorumlock_guard_slot(first) == 0 ? "doors#0" : "doors#1"));
    CHECK(quorumlock_guard_remaining_ms(first) > 20000 && quorumlock_guard_fencing_token(first) == 0);
    CHECK(quorumlock_mutex_try_lock(doors, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    CHECK(quorumlock_mutex_try_lock(slot, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    MUST(quorumlock_guard_extend(second, 20000, &error));
    MUST(quorumlock_guard_ensure(second, 1000, &error));
    CHECK(quorumlock_guard_unlock(second, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(second);

    /* A permit moves as the lock of its slot. */
    MUST(quorumlock_guard_detach(first, &lease, &error));
    quorumlock_guard_free(first);
    MUST(quorumlock_client_attach(client, lease, &first, &error));
    quorumlock_lease_free(lease);
    second = take(doors);
    CHECK(quorumlock_mutex_try_lock(doors, &none, NULL) == QUORUMLOCK_HELD && none == NULL);
    quorumlock_guard_free(first);
    quorumlock_guard_free(second);

    is_refused(permits_of(client, 0));
    is_refused(permits_of(client, 257));
    other = permits_of(client, 2);
    CHECK(quorumlock_mutex_set_fair(other, 1) == QUORUMLOCK_CONFIG);
    CHECK(quorumlock_mutex_set_reentrant(other, NULL) == QUORUMLOCK_CONFIG);
    quorumlock_guard_free(take(other));
    quorumlock_mutex_free(other);
    CHECK(quorumlock_mutex_holder(doors, &holder, NULL) == QUORUMLOCK_CONFIG && holder == NULL);

    quorumlock_mutex_free(slot);
    quorumlock_mutex_free(doors);
    quorumlock_client_free(client);
    puts("all kept");
    return 0;
}
