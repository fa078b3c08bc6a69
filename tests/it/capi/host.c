/*
 * A program that embeds the library: it handles no SIGPIPE, a timer interrupts it all the time, it forks, and its
 * servers hang and end meanwhile.
 *
 *     host PAIRS URL...    says "ready", waits for a line, which comes when a server hangs and another is dead, and
 *                          goes on; each of its threads locks and unlocks PAIRS times in each of four parts
 */
#define _GNU_SOURCE

#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

static char **urls;
static int url_count, pairs;
static volatile sig_atomic_t interruptions;

static void interrupted(int number)
{
    (void)number;
    interruptions++;
}

/* A signal every 500 microseconds, which system calls are begun again after, or not. */
static void interrupt(int flags)
{
    struct sigaction action;
    struct itimerval often;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupted;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    often.it_interval.tv_sec = often.it_value.tv_sec = 0;
    often.it_interval.tv_usec = often.it_value.tv_usec = 500;
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
}

static void not_interrupted(void)
{
    struct itimerval never;
    memset(&never, 0, sizeof never);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void *lock_and_unlock(void *client)
{
    quorumlock_mutex *mutex = mutex_of(client, "host");
    int pair;
    for (pair = 0; pair < pairs; pair++) {
        quorumlock_guard *guard = NULL;
        MUST(quorumlock_mutex_lock(mutex, -1, NULL, &guard, &error));
        MUST(quorumlock_guard_unlock(guard, &error));
        quorumlock_guard_free(guard);
    }
    quorumlock_mutex_free(mutex);
    return NULL;
}

static void threads_work(quorumlock_client *client)
{
    pthread_t threads[THREADS];
    int index;
    for (index = 0; index < THREADS; index++) {
        CHECK(pthread_create(&threads[index], NULL, lock_and_unlock, client) == 0);
    }
    for (index = 0; index < THREADS; index++) {
        pthread_join(threads[index], NULL);
    }
}

static pid_t parent;
static int releases;

static void never(void *userdata)
{
    (void)userdata;
    CHECK(!"called though nothing was lost");
}

/* Gives back what is the parent's, and so in the parent. */
static void in_the_parent(void *userdata)
{
    CHECK(getpid() == parent && userdata == &releases);
    releases++;
}

static void on_event(void *userdata, const quorumlock_event *event)
{
    CHECK(getpid() == parent && userdata == &releases && quorumlock_event_kind(event) != QUORUMLOCK_EVENT_NONE);
}

typedef struct inherited {
    quorumlock_config *config;
    quorumlock_client *client;
    quorumlock_mutex *mutex;
    quorumlock_guard *guard;
    quorumlock_lease *lease;
    quorumlock_cancel_handle *cancel;
} inherited;

/* The results of calls in a child with all that it has inherited, and what it can do by itself. */
static void live_as_a_child(inherited *of)
{
    quorumlock_guard *guard = NULL;
    quorumlock_lease *lease = NULL;
    quorumlock_mutex *mutex = NULL;
    quorumlock_client *client = NULL;
    quorumlock_error *error = NULL;
    int descriptor = -1;
    CHECK(quorumlock_mutex_try_lock(of->mutex, &guard, &error) == QUORUMLOCK_FORKED && guard == NULL);
    CHECK(quorumlock_error_result(error) == QUORUMLOCK_FORKED);
    quorumlock_error_free(error);
    CHECK(quorumlock_mutex_lock(of->mutex, -1, NULL, &guard, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_mutex_lock(of->mutex, 10, of->cancel, &guard, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_mutex_lock_deadline(of->mutex, UINT64_MAX, NULL, &guard, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_mutex_set_ttl_ms(of->mutex, 1000) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_mutex_set_watchdog(of->mutex, 1) == QUORUMLOCK_FORKED);
    error = NULL;
    CHECK(quorumlock_guard_extend(of->guard, 1000, &error) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_error_is_permanent(error));
    quorumlock_error_free(error);
    error = NULL;
    CHECK(quorumlock_guard_ensure(of->guard, 0, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_guard_unlock(of->guard, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_guard_detach(of->guard, &lease, NULL) == QUORUMLOCK_FORKED && lease == NULL);
    CHECK(quorumlock_guard_lost_fd(of->guard, &descriptor, NULL) == QUORUMLOCK_FORKED && descriptor == -1);
    CHECK(quorumlock_guard_on_lost(of->guard, never, NULL, NULL, NULL) == QUORUMLOCK_FORKED);
    CHECK(quorumlock_guard_remaining_ms(of->guard) == 0 && is(quorumlock_guard_name(of->guard), "parent"));
    CHECK(quorumlock_client_mutex(of->client, "x", 1, QUORUMLOCK_LOCK_PLAIN, &mutex) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_try_lock(mutex, &guard, NULL) == QUORUMLOCK_FORKED && guard == NULL);
    quorumlock_mutex_free(mutex);
    CHECK(quorumlock_client_attach(of->client, of->lease, &guard, NULL) == QUORUMLOCK_FORKED && guard == NULL);
    CHECK(quorumlock_cancel_handle_cancel(of->cancel) == QUORUMLOCK_OK);

    /* What it makes itself works, also from the configuration that it has inherited. */
    MUST(quorumlock_client_new(of->config, &client, &error));
    mutex = mutex_of(client, "child");
    MUST(quorumlock_mutex_lock(mutex, -1, NULL, &guard, &error));
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);
    CHECK(quorumlock_mutex_set_ttl_ms(mutex, 700) == QUORUMLOCK_OK);
    CHECK(quorumlock_mutex_set_watchdog(mutex, 1) == QUORUMLOCK_OK);
    guard = take(mutex);
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    CHECK(quorumlock_guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    quorumlock_guard_free(guard);

    quorumlock_guard_free(of->guard);
    quorumlock_lease_free(of->lease);
    quorumlock_client_free(of->client);
    quorumlock_mutex_free(of->mutex);
    quorumlock_cancel_handle_free(of->cancel);
    quorumlock_config_free(of->config);
}

static void children_are_refused(void)
{
    inherited of = {NULL, NULL, NULL, NULL, NULL, NULL};
    quorumlock_mutex *second;
    quorumlock_guard *guard;
    int status, leaves;
    parent = getpid();
    of.config = config_of(urls, url_count);
    CHECK(quorumlock_config_add_observer(of.config, on_event, &releases, in_the_parent) == QUORUMLOCK_OK);
    MUST(quorumlock_client_new(of.config, &of.client, &error));
    quorumlock_config_free(of.config);
    of.config = config_of(urls, url_count);
    of.mutex = mutex_of(of.client, "parent");
    CHECK(quorumlock_mutex_set_watchdog(of.mutex, 1) == QUORUMLOCK_OK);
    /* Longer than the children take on a busy machine. */
    CHECK(quorumlock_mutex_set_ttl_ms(of.mutex, 60000) == QUORUMLOCK_OK);
    of.guard = take(of.mutex);
    MUST(quorumlock_guard_on_lost(of.guard, never, &releases, in_the_parent, &error));
    of.cancel = quorumlock_cancel_handle_new();
    second = mutex_of(of.client, "second");
    CHECK(quorumlock_mutex_set_ttl_ms(second, 60000) == QUORUMLOCK_OK);
    guard = take(second);
    MUST(quorumlock_guard_detach(guard, &of.lease, &error));
    quorumlock_guard_free(guard);
    fflush(NULL);
    for (leaves = 0; leaves < 2; leaves++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            live_as_a_child(&of);
            /* With and without what the C library does at the end. */
            leaves ? exit(0) : _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    /* Nothing has happened to the parent's. */
    CHECK(quorumlock_guard_remaining_ms(of.guard) > 0 && !quorumlock_cancel_handle_is_cancelled(of.cancel));
    MUST(quorumlock_guard_extend(of.guard, 60000, &error));
    MUST(quorumlock_client_attach(of.client, of.lease, &guard, &error));
    MUST(quorumlock_guard_unlock(guard, &error));
    quorumlock_guard_free(guard);
    MUST(quorumlock_guard_unlock(of.guard, &error));
    quorumlock_guard_free(of.guard);
    CHECK(releases == 1);
    quorumlock_lease_free(of.lease);
    quorumlock_mutex_free(second);
    quorumlock_mutex_free(of.mutex);
    quorumlock_client_free(of.client);
    CHECK(releases == 2);
    quorumlock_cancel_handle_free(of.cancel);
    quorumlock_config_free(of.config);
}

int main(int count, char **arguments)
{
    char line[8];
    quorumlock_client *client;
    CHECK(count > 2);
    pairs = atoi(arguments[1]);
    urls = arguments + 2;
    url_count = count - 2;
    children_are_refused();
    client = client_of(urls, url_count);
    interrupt(SA_RESTART);
    threads_work(client);
    interrupt(0);
    threads_work(client);
    puts("ready");
    fflush(stdout);
    /* Without SA_RESTART, a read ends too soon. */
    while (fgets(line, sizeof line, stdin) == NULL) {
        CHECK(ferror(stdin) && errno == EINTR);
        clearerr(stdin);
    }
    threads_work(client);
    interrupt(SA_RESTART);
    threads_work(client);
    not_interrupted();
    quorumlock_client_free(client);
    CHECK(interruptions > 0);
    printf("%d interruptions\n", (int)interruptions);
    return 0;
}
