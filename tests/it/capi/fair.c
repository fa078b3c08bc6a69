/* Locks that are fair, fenced or both: which excludes which, and which has a number.
 *
 * fair URL... */
#include "check.h"

static quorumlock_mutex *mutex_for(const quorumlock_client *client, int is_fair, int is_fenced)
{
    int kind = is_fenced ? QUORUMLOCK_LOCK_FENCED : QUORUMLOCK_LOCK_PLAIN;
    quorumlock_mutex *mutex = mutex_of_kind(client, "in turn", kind);
    CHECK(quorumlock_mutex_set_fair(mutex, is_fair) == QUORUMLOCK_OK);
    return mutex;
}

/* Takes a lock, sees how an attempt by another mutex ends, and gives the number. */
static uint64_t held_against(const quorumlock_mutex *mutex, const quorumlock_mutex *other, quorumlock_result expected)
{
    quorumlock_guard *guard = take(mutex), *second = NULL;
    uint64_t number = quorumlock_guard_fencing_token(guard);
    CHECK(quorumlock_mutex_try_lock(other, &second, NULL) == expected);
    quorumlock_guard_free(second);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    return number;
}

/* One that waits in vain is in front of no other one afterwards. */
static void waits(const quorumlock_mutex *mutex, const quorumlock_mutex *other)
{
    quorumlock_guard *guard = take(mutex), *second = NULL;
    CHECK(quorumlock_mutex_lock(other, 2000, NULL, &second, NULL) == QUORUMLOCK_HELD);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    MUST(quorumlock_mutex_lock(mutex, 10000, NULL, &guard, &error));
    quorumlock_guard_free(guard);
}

int main(int count, char **arguments)
{
    quorumlock_client *client = client_of(arguments + 1, count - 1), *other = client_of(arguments + 1, count - 1);
    quorumlock_mutex *both = mutex_for(client, 1, 1), *same = mutex_for(other, 1, 1);
    quorumlock_mutex *fenced = mutex_for(other, 0, 1), *fair = mutex_for(other, 1, 0);
    uint64_t first = held_against(both, same, QUORUMLOCK_HELD), second = held_against(both, fenced, QUORUMLOCK_HELD);
    uint64_t third = held_against(fenced, both, QUORUMLOCK_HELD), last = held_against(both, fair, QUORUMLOCK_OK);
    CHECK(first > 0 && first < second && second < third && third < last);
    waits(both, same);
    CHECK(held_against(fair, both, QUORUMLOCK_OK) == 0);
    quorumlock_mutex_free(both);
    quorumlock_mutex_free(same);
    quorumlock_mutex_free(fenced);
    quorumlock_mutex_free(fair);
    quorumlock_client_free(client);
    quorumlock_client_free(other);
    puts("all kept");
    return 0;
}
