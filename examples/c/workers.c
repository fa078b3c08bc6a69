/*
 * Threads that take turns: each adds 1 to one of a few numbers, under its lock, again and again.
 *
 *     cc -std=c99 -O2 -pthread -Isrc/ffi examples/c/workers.c -Ltarget/release -lquorumlock \
 *         -Wl,-rpath,target/release -o workers
 *     ./workers 8 10000 redis://127.0.0.1:6379 redis://127.0.0.1:6380 redis://127.0.0.1:6381
 *
 * Eight threads, ten thousand times each. Ctrl-C ends it early: a thread waits for the signal, since a signal handler
 * may not call the library, and cancels all waits. The exit code is 0 when no update was lost, 1 when one was, and 2
 * when it could not be tried.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <quorumlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESOURCES = 8 };

typedef struct worker {
    pthread_t thread;
    unsigned number;
    unsigned pairs;
    unsigned done;
    unsigned failures;
    /* How long each lock and its release took, in nanoseconds. */
    double *times;
} worker;

static quorumlock_client *client;
static quorumlock_cancel_handle *shutdown_handle;
/* Only the holder of its lock touches a number: read, wait a little, write. */
static volatile unsigned long numbers[RESOURCES];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Adds 1 under the lock. 0 when it could not. */
static int add(worker *self, quorumlock_mutex *mutex, unsigned resource)
{
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;
    quorumlock_result result = quorumlock_mutex_lock(mutex, -1, shutdown_handle, &guard, &error);

    if (result == QUORUMLOCK_OK) {
        numbers[resource] = numbers[resource] + 1;
        self->done++;
        result = quorumlock_guard_unlock(guard, &error);
        quorumlock_guard_free(guard);
    }
    if (result != QUORUMLOCK_OK && result != QUORUMLOCK_CANCELLED) {
        quorumlock_str message = quorumlock_error_message(error);
        fprintf(stderr, "worker %u: %.*s\n", self->number, (int)message.length, message.data);
        self->failures++;
    }
    quorumlock_error_free(error);
    return result == QUORUMLOCK_OK;
}

static void *work(void *argument)
{
    worker *self = argument;
    quorumlock_mutex *mutexes[RESOURCES];
    unsigned index;

    for (index = 0; index < RESOURCES; index++) {
        char name[32];
        int length = snprintf(name, sizeof name, "workers/%u", index);
        if (quorumlock_client_mutex(client, name, (size_t)length, QUORUMLOCK_LOCK_PLAIN, &mutexes[index])
            != QUORUMLOCK_OK) {
            abort();
        }
    }
    for (index = 0; index < self->pairs && !quorumlock_cancel_handle_is_cancelled(shutdown_handle); index++) {
        unsigned resource = (self->number + index) % RESOURCES;
        double start = now();
        if (add(self, mutexes[resource], resource)) {
            self->times[self->done - 1] = now() - start;
        }
    }
    for (index = 0; index < RESOURCES; index++) {
        quorumlock_mutex_free(mutexes[index]);
    }
    return NULL;
}

/* Waits for Ctrl-C, or for the same signal when all is done. */
static void *wait_for_signal(void *argument)
{
    int number;
    sigwait(argument, &number);
    quorumlock_cancel_handle_cancel(shutdown_handle);
    return NULL;
}

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static int report(worker *workers, unsigned threads, unsigned pairs)
{
    double *times = malloc((size_t)threads * pairs * sizeof *times);
    unsigned long sum = 0, done = 0, failures = 0;
    unsigned index;

    if (times == NULL) {
        return 2;
    }
    for (index = 0; index < threads; index++) {
        memcpy(times + done, workers[index].times, workers[index].done * sizeof *times);
        done += workers[index].done;
        failures += workers[index].failures;
    }
    for (index = 0; index < RESOURCES; index++) {
        sum += numbers[index];
    }
    qsort(times, done, sizeof *times, compare);
    printf("%lu pairs, %lu counted, %lu failures", done, sum, failures);
    if (done > 0) {
        printf(", p50 %.1f us, p99 %.1f us", times[done / 2] / 1e3, times[done * 99 / 100] / 1e3);
    }
    puts("");
    free(times);
    return sum == done && failures == 0 ? 0 : 1;
}

/* One client for all threads. */
static int connect_to(char **urls, int count)
{
    quorumlock_config *config = quorumlock_config_new();
    quorumlock_error *error = NULL;
    quorumlock_result result;
    int index;

    for (index = 0; index < count; index++) {
        quorumlock_config_add_node(config, urls[index], strlen(urls[index]));
    }
    /* Far more than a node needs: that a machine is busy is no failure here. */
    result = quorumlock_config_set(config, "node_timeout", strlen("node_timeout"), "5s", strlen("5s"), &error);
    if (result == QUORUMLOCK_OK) {
        result = quorumlock_client_new(config, &client, &error);
    }
    quorumlock_config_free(config);
    if (result != QUORUMLOCK_OK) {
        quorumlock_str message = quorumlock_error_message(error);
        fprintf(stderr, "%.*s\n", (int)message.length, message.data);
        quorumlock_error_free(error);
    }
    return result == QUORUMLOCK_OK;
}

int main(int count, char **arguments)
{
    unsigned threads = count > 3 ? (unsigned)atoi(arguments[1]) : 0;
    unsigned pairs = count > 3 ? (unsigned)atoi(arguments[2]) : 0;
    worker *workers = calloc(threads + 1u, sizeof *workers);
    pthread_t signals;
    sigset_t interrupt;
    unsigned index;
    int status;

    if (workers == NULL || threads == 0 || !connect_to(arguments + 3, count - 3)) {
        fprintf(stderr, "usage: %s THREADS PAIRS URL...\n", arguments[0]);
        free(workers);
        return 2;
    }
    shutdown_handle = quorumlock_cancel_handle_new();
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
    if (pthread_create(&signals, NULL, wait_for_signal, &interrupt) != 0) {
        return 2;
    }
    for (index = 0; index < threads; index++) {
        worker *self = &workers[index];
        self->number = index;
        self->pairs = pairs;
        self->times = calloc(pairs + 1u, sizeof *self->times);
        if (self->times == NULL || pthread_create(&self->thread, NULL, work, self) != 0) {
            return 2;
        }
    }
    for (index = 0; index < threads; index++) {
        pthread_join(workers[index].thread, NULL);
    }
    pthread_kill(signals, SIGINT);
    pthread_join(signals, NULL);
    status = report(workers, threads, pairs);

    for (index = 0; index < threads; index++) {
        free(workers[index].times);
    }
    free(workers);
    quorumlock_cancel_handle_free(shutdown_handle);
    quorumlock_client_free(client);
    return status;
}
