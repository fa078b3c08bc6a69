/*
 * The events about nodes and their status, when one of them is restarted without its data in the middle.
 *
 *     nodes URL...     says "ready" once connected, waits for a line, locks again, and prints the events
 *
 * The last URL is of a node that is not there; the one before it is declared durable. Another program has used the
 * others, with a max_ttl of 30 s. The first and the durable one are restarted.
 */
#define _POSIX_C_SOURCE 200809L

#include "check.h"
#include <time.h>

static void on_event(void *userdata, const quorumlock_event *event)
{
    quorumlock_str message = quorumlock_event_message(event);
    quorumlock_kind kind = quorumlock_event_kind(event);
    (void)userdata;
    if (kind == QUORUMLOCK_EVENT_NODE_MAY_EVICT) {
        CHECK(is(quorumlock_event_policy(event), "allkeys-lru"));
    } else if (kind == QUORUMLOCK_EVENT_NODE_QUARANTINED) {
        CHECK(quorumlock_event_remaining_ms(event) > 50000 && quorumlock_event_address_count(event) == 1);
    } else if (kind == QUORUMLOCK_EVENT_MAX_TTL_DIFFERS) {
        CHECK(quorumlock_event_ttl_ms(event) == 30000 && quorumlock_event_address_count(event) == 1);
    } else if (kind == QUORUMLOCK_EVENT_NODE_COUNT_DIFFERS) {
        CHECK(quorumlock_event_nodes(event) == 4 && quorumlock_event_address_count(event) == 1);
    } else if (kind != QUORUMLOCK_EVENT_NODE_UP && kind != QUORUMLOCK_EVENT_NODE_DOWN
        && kind != QUORUMLOCK_EVENT_PUBLISH_REFUSED && kind != QUORUMLOCK_EVENT_SUBSCRIBE_REFUSED) {
        return;
    }
    printf("%d: %.*s\n", (int)kind, (int)message.length, message.data);
}

static quorumlock_nodes *nodes_of(quorumlock_client *client)
{
    quorumlock_nodes *nodes = NULL;
    MUST(quorumlock_client_nodes(client, &nodes, &error));
    return nodes;
}

/* No call waits for nodes that a majority does not need: it may take a few locks until all running ones are met. */
static int are_met_again(const quorumlock_nodes *nodes, size_t last)
{
    size_t index;
    for (index = 0; index < last; index++) {
        if (!quorumlock_nodes_is_connected(nodes, index) || quorumlock_nodes_run_id(nodes, index).length == 0) {
            return 0;
        }
    }
    return quorumlock_nodes_state(nodes, 0) == QUORUMLOCK_NODE_QUARANTINED;
}

int main(int count, char **arguments)
{
    quorumlock_config *config = config_of(arguments + 1, count - 3);
    char *durable = arguments[count - 2], *dead = arguments[count - 1], line[8], url[256];
    size_t last = (size_t)count - 2, index;
    quorumlock_client *client = NULL;
    quorumlock_mutex *mutex;
    quorumlock_nodes *nodes;
    int tries;

    CHECK((size_t)snprintf(url, sizeof url, "%s?durable=true", durable) < sizeof url);
    CHECK(quorumlock_config_add_node(config, url, strlen(url)) == QUORUMLOCK_OK);
    CHECK(quorumlock_config_add_node(config, dead, strlen(dead)) == QUORUMLOCK_OK);
    set(config, "restart_policy", "strict");
    set(config, "restart_policy", "observed");
    set(config, "max_ttl", "60s");
    CHECK(quorumlock_config_add_observer(config, on_event, NULL, NULL) == QUORUMLOCK_OK);
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);

    nodes = nodes_of(client);
    CHECK(quorumlock_nodes_count(nodes) == last + 1);
    for (index = 0; index <= last + 1; index++) {
        CHECK(quorumlock_nodes_state(nodes, index)
            == (index <= last ? QUORUMLOCK_NODE_UNKNOWN : QUORUMLOCK_NODE_NONE));
        CHECK(quorumlock_nodes_role(nodes, index) == QUORUMLOCK_ROLE_UNKNOWN);
        CHECK(quorumlock_nodes_is_durable(nodes, index) == (index == last - 1));
        CHECK(quorumlock_nodes_run_id(nodes, index).length == 0 && quorumlock_nodes_last_fault(nodes, index) == NULL);
    }
    CHECK(quorumlock_nodes_address(nodes, last + 1).length == 0);
    quorumlock_nodes_free(nodes);

    mutex = mutex_of(client, "nodes");
    quorumlock_guard_free(take(mutex));
    MUST(quorumlock_client_connect(client, 5000, &nodes, &error));
    CHECK(quorumlock_nodes_count(nodes) == last + 1);
    CHECK(quorumlock_nodes_state(nodes, 0) == QUORUMLOCK_NODE_VOTING && quorumlock_nodes_is_connected(nodes, 0));
    CHECK(quorumlock_nodes_state(nodes, last) == QUORUMLOCK_NODE_DOWN);
    quorumlock_nodes_free(nodes);
    puts("ready");
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    nodes = nodes_of(client);
    for (tries = 0; tries < 5000 && !are_met_again(nodes, last); tries++) {
        struct timespec moment = {0, 2000000};
        quorumlock_guard *guard = NULL;
        MUST(quorumlock_mutex_lock(mutex, -1, NULL, &guard, &error));
        quorumlock_guard_free(guard);
        nanosleep(&moment, NULL);
        quorumlock_nodes_free(nodes);
        nodes = nodes_of(client);
    }
    for (index = 0; index <= last; index++) {
        quorumlock_str message = quorumlock_nodes_message(nodes, index);
        quorumlock_node_state state = quorumlock_nodes_state(nodes, index);
        printf("node %d: %.*s\n", (int)index, (int)message.length, message.data);
        CHECK((state == QUORUMLOCK_NODE_QUARANTINED) == (quorumlock_nodes_quarantine_ms(nodes, index) > 50000));
        /* The durable one votes before it is noted as another process, and may have been noted by now. */
        CHECK(index == last - 1
            || (quorumlock_nodes_counted_ms(nodes, index) > 0) == (index > 0 && index < last - 1));
        CHECK(quorumlock_nodes_state_age_ms(nodes, index) < 50000);
        if (index < last) {
            CHECK(quorumlock_nodes_role(nodes, index) == QUORUMLOCK_ROLE_MASTER);
            CHECK(quorumlock_nodes_run_id(nodes, index).length == 8 && quorumlock_nodes_server(nodes, index).length > 0);
            CHECK(quorumlock_nodes_is_connected(nodes, index));
            CHECK(quorumlock_nodes_latency_count(nodes, index) > 0);
            CHECK(quorumlock_nodes_latency_p50_us(nodes, index) <= quorumlock_nodes_latency_p99_us(nodes, index));
            CHECK(quorumlock_nodes_latency_p99_us(nodes, index) <= quorumlock_nodes_latency_max_us(nodes, index));
        } else {
            const quorumlock_fault *fault = quorumlock_nodes_last_fault(nodes, index);
            CHECK(state == QUORUMLOCK_NODE_DOWN && !quorumlock_nodes_is_connected(nodes, index));
            CHECK(quorumlock_fault_cause(fault) == QUORUMLOCK_CAUSE_REFUSED);
            CHECK(quorumlock_nodes_fault_kinds(nodes, index) > 0);
            CHECK(quorumlock_nodes_fault_count(nodes, index, 0) > 0);
            CHECK(quorumlock_fault_cause(quorumlock_nodes_fault(nodes, index, 0)) == QUORUMLOCK_CAUSE_REFUSED);
            CHECK(quorumlock_nodes_fault(nodes, index, 99) == NULL);
        }
    }
    quorumlock_nodes_free(nodes);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    return 0;
}
