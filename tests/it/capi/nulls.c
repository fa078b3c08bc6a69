/* The frame of the program that tests NULL for every pointer. Where CALLS stands, the calls are put in. */
#include "check.h"

/* What stands in an output that nothing is to be written to. */
#define NOWHERE ((void *)&number)
static int number = -7;

static void on_event(void *userdata, const quorumlock_event *event)
{
    (void)userdata;
    CHECK(event != NULL);
}

static void on_lost(void *userdata)
{
    (void)userdata;
    CHECK(!"lost");
}

static void on_write(void *userdata, const char *data, size_t length)
{
    (void)userdata;
    (void)data;
    (void)length;
    CHECK(!"written");
}

static int provide(void *userdata, quorumlock_str node, quorumlock_login *login)
{
    (void)userdata;
    (void)node;
    (void)login;
    CHECK(!"provided");
    return 1;
}

/* An error that says this, and is freed. */
static void is_told(quorumlock_error **error, const char *message)
{
    CHECK(*error != NULL && quorumlock_error_result(*error) == QUORUMLOCK_NULL_POINTER);
    if (!is(quorumlock_error_message(*error), message)) {
        fprintf(stderr, "not %s: %.*s\n", message, (int)quorumlock_error_message(*error).length,
            quorumlock_error_message(*error).data);
        exit(1);
    }
    quorumlock_error_free(*error);
    *error = NULL;
}

int main(int count, char **arguments)
{
    quorumlock_config *config = config_of(arguments + 1, count - 1), *out_config = NOWHERE;
    quorumlock_client *client = NULL, *out_client = NOWHERE;
    quorumlock_mutex *mutex, *out_mutex = NOWHERE;
    quorumlock_guard *guard, *other, *out_guard = NOWHERE;
    quorumlock_lease *lease = NULL, *out_lease = NOWHERE;
    quorumlock_secret *secret = NULL, *out_secret = NOWHERE;
    quorumlock_cancel_handle *cancel_handle = quorumlock_cancel_handle_new(), *cancel = cancel_handle;
    quorumlock_owner *owner = quorumlock_owner_new();
    quorumlock_nodes *nodes = NULL, *out_nodes = NOWHERE;
    quorumlock_holder *holder = NULL, *out_holder = NOWHERE;
    quorumlock_counters *counters = quorumlock_counters_new('/');
    quorumlock_error *error = NULL;
    quorumlock_str text = { "x", 1 };

    MUST(quorumlock_client_new(config, &client, &error));
    MUST(quorumlock_client_nodes(client, &nodes, &error));
    mutex = mutex_of(client, "nulls");
    guard = take(mutex);
    MUST(quorumlock_mutex_holder(mutex, &holder, &error));
    quorumlock_mutex_free(mutex);
    mutex = mutex_of(client, "lease");
    other = take(mutex);
    MUST(quorumlock_guard_detach(other, &lease, &error));
    quorumlock_guard_free(other);

    CALLS;

    CHECK(out_config == NOWHERE && out_client == NOWHERE);
    CHECK(out_mutex == NOWHERE && out_guard == NOWHERE && out_lease == NOWHERE);
    CHECK(out_secret == NOWHERE && out_nodes == NOWHERE && quorumlock_nodes_count(nodes) == 1);
    quorumlock_nodes_free(nodes);
    CHECK(out_holder == NOWHERE && quorumlock_holder_node_count(holder) == 1);
    quorumlock_holder_free(holder);
    CHECK(error == NULL && number == -7 && !quorumlock_cancel_handle_is_cancelled(cancel));
    MUST(quorumlock_lease_into_text(lease, &secret, &error));
    quorumlock_secret_free(secret);
    quorumlock_lease_free(lease);
    MUST(quorumlock_guard_unlock(guard, &error));
    quorumlock_guard_free(guard);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    quorumlock_config_free(config);
    quorumlock_cancel_handle_free(cancel);
    quorumlock_counters_free(counters);
    quorumlock_owner_free(owner);
    puts("nothing has happened");
    return 0;
}
