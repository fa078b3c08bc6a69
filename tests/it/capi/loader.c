/*
 * A program that loads the library, uses it in two threads, closes it, and goes on: again and again. In the end
 * nothing is left of it, no thread and no descriptor, and threads that used it end well after it was closed; so does a
 * child. One node is named by a name whose look-up is still running when the library is closed.
 *
 *     loader LIBRARY TIMES URL...
 *
 * TIMES is how often it is loaded for a moment: whatever stays behind each time runs out, if it is often. A process has
 * 1024 keys for thread-local values, for one.
 */
#define _GNU_SOURCE

#include "check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 12 };

/* Every function that is used here, as the header declares it. */
#define FUNCTIONS(each)                                                                                                \
    each(config_new) each(config_free) each(config_add_node) each(config_set) each(client_new)                         \
    each(client_free) each(client_mutex) each(mutex_free) each(mutex_set_watchdog) each(mutex_lock) each(guard_lost_fd) \
    each(guard_unlock) each(guard_free) each(config_add_observer)

#define DECLARE(name) __extension__ __typeof__(quorumlock_##name) *name;
#define LOAD(name)                                                                                                     \
    *(void **)&functions->name = dlsym(functions->library, "quorumlock_" #name);                                       \
    CHECK(functions->name != NULL);

typedef struct functions {
    void *library;
    FUNCTIONS(DECLARE)
} functions;

typedef struct user {
    functions *functions;
    quorumlock_client *client;
    pthread_barrier_t barrier;
} user;

static void sleep_ms(long millis)
{
    struct timespec time = {0, 0};
    time.tv_nsec = millis * 1000000;
    nanosleep(&time, NULL);
}

/* In place of the C library's: a look-up that takes longer than the library is open. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    __extension__ __typeof__(getaddrinfo) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    sleep_ms(50);
    return real(host, service, hints, found);
}

static int entries_of(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    CHECK(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void on_event(void *userdata, const quorumlock_event *event)
{
    (void)userdata;
    (void)event;
}

static void lock_and_unlock(functions *functions, quorumlock_client *client)
{
    quorumlock_mutex *mutex = NULL;
    quorumlock_guard *guard = NULL;
    int descriptor;
    CHECK(functions->client_mutex(client, "loader", 6, QUORUMLOCK_LOCK_PLAIN, &mutex) == QUORUMLOCK_OK);
    CHECK(functions->mutex_set_watchdog(mutex, 1) == QUORUMLOCK_OK);
    CHECK(functions->mutex_lock(mutex, -1, NULL, &guard, NULL) == QUORUMLOCK_OK);
    CHECK(functions->guard_lost_fd(guard, &descriptor, NULL) == QUORUMLOCK_OK);
    CHECK(functions->guard_unlock(guard, NULL) == QUORUMLOCK_OK);
    functions->guard_free(guard);
    functions->mutex_free(mutex);
}

static void *use(void *argument)
{
    user *user = argument;
    int again;
    for (again = 0; again < 5; again++) {
        lock_and_unlock(user->functions, user->client);
    }
    pthread_barrier_wait(&user->barrier);
    /* The library is closed, and this thread still has what Rust notes of threads. */
    pthread_barrier_wait(&user->barrier);
    return NULL;
}

static void load(functions *functions, const char *path)
{
    functions->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (functions->library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    FUNCTIONS(LOAD)
}

static void open(functions *functions, user *user, const char *path, char **urls, int count)
{
    quorumlock_config *config;
    int index;
    load(functions, path);
    config = functions->config_new();
    for (index = 0; index < count; index++) {
        CHECK(functions->config_add_node(config, urls[index], strlen(urls[index])) == QUORUMLOCK_OK);
    }
    CHECK(functions->config_set(config, "node_timeout", 12, "5s", 2, NULL) == QUORUMLOCK_OK);
    functions->config_add_observer(config, on_event, NULL, NULL);
    user->functions = functions;
    CHECK(functions->client_new(config, &user->client, NULL) == QUORUMLOCK_OK);
    functions->config_free(config);
}

static void close_after(user *user)
{
    user->functions->client_free(user->client);
    CHECK(dlclose(user->functions->library) == 0);
}

static void one_round(const char *path, char **urls, int count)
{
    functions functions;
    user user;
    pthread_t thread;
    int index;
    open(&functions, &user, path, urls, count);
    pthread_barrier_init(&user.barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, use, &user) == 0);
    for (index = 0; index < 5; index++) {
        lock_and_unlock(&functions, user.client);
    }
    pthread_barrier_wait(&user.barrier);
    close_after(&user);
    pthread_barrier_wait(&user.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&user.barrier);
}

static void *use_once(void *argument)
{
    user *user = argument;
    lock_and_unlock(user->functions, user->client);
    user->functions->client_free(user->client);
    return NULL;
}

/* Used in a thread that ends before it is closed, so that nothing keeps the library but itself. */
static void for_a_moment(const char *path, char **urls)
{
    functions functions;
    user user;
    pthread_t thread;
    open(&functions, &user, path, urls, 1);
    CHECK(pthread_create(&thread, NULL, use_once, &user) == 0);
    pthread_join(thread, NULL);
    CHECK(dlclose(functions.library) == 0);
}

int main(int count, char **arguments)
{
    int round, status, tries, descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    pid_t child;
    CHECK(count > 3);
    for (round = 0; round < atoi(arguments[2]); round++) {
        for_a_moment(arguments[1], arguments + 3);
    }
    for (round = 0; round < ROUNDS; round++) {
        one_round(arguments[1], arguments + 3, count - 3);
        /* A function that was registered for children is called, or was unregistered with the library. */
        child = fork();
        if (child == 0) {
            _exit(7);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        /* The look-up of a name ends when it is done. */
        for (tries = 0; tries < 5000 && entries_of("/proc/self/task") > threads; tries++) {
            sleep_ms(1);
        }
        CHECK(entries_of("/proc/self/task") == threads);
        CHECK(entries_of("/proc/self/fd") == descriptors);
    }
    puts("nothing is left");
    return 0;
}
