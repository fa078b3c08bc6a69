/*
 * A program that loads the library, uses it in two threads, closes it, and goes on: again and again. In the end nothing is
 * left of it, no thread and no descriptor, and threads that used it end well after it was closed; so does a child.
 *
 *     loader LIBRARY URL...
 */
#define _GNU_SOURCE

#include "check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 12 };

/* Every function that is used here, as the header declares it. */
#define FUNCTIONS(each)                                                                                                \
    each(config_new) each(config_free) each(config_add_node) each(config_set_node_timeout_ms) each(client_new)         \
    each(client_free) each(mutex_new) each(mutex_free) each(mutex_set_watchdog) each(mutex_lock) each(guard_lost_fd)    \
    each(guard_unlock) each(guard_free) each(config_set_observer)

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
    CHECK(functions->mutex_new(client, "loader", 6, &mutex) == QUORUMLOCK_OK);
    CHECK(functions->mutex_set_watchdog(mutex, 1) == QUORUMLOCK_OK);
    CHECK(functions->mutex_lock(mutex, NULL, &guard, NULL) == QUORUMLOCK_OK);
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

static void one_round(const char *path, char **urls, int count)
{
    functions functions;
    user user;
    quorumlock_config *config;
    pthread_t thread;
    int index;
    load(&functions, path);
    config = functions.config_new();
    for (index = 0; index < count; index++) {
        CHECK(functions.config_add_node(config, urls[index], strlen(urls[index])) == QUORUMLOCK_OK);
    }
    functions.config_set_node_timeout_ms(config, 5000);
    functions.config_set_observer(config, on_event, NULL, NULL);
    CHECK(functions.client_new(config, &user.client, NULL) == QUORUMLOCK_OK);
    functions.config_free(config);
    user.functions = &functions;
    pthread_barrier_init(&user.barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, use, &user) == 0);
    for (index = 0; index < 5; index++) {
        lock_and_unlock(&functions, user.client);
    }
    pthread_barrier_wait(&user.barrier);
    functions.client_free(user.client);
    CHECK(dlclose(functions.library) == 0);
    pthread_barrier_wait(&user.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&user.barrier);
}

int main(int count, char **arguments)
{
    int round, status, tries, descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    pid_t child;
    CHECK(count > 2);
    for (round = 0; round < ROUNDS; round++) {
        one_round(arguments[1], arguments + 2, count - 2);
        /* Whoever asked to be called in children is called, or was forgotten with the library. */
        child = fork();
        if (child == 0) {
            _exit(7);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        /* The look-up of a name ends when it is done. */
        for (tries = 0; tries < 5000 && entries_of("/proc/self/task") > threads; tries++) {
            struct timespec millisecond = {0, 1000000};
            nanosleep(&millisecond, NULL);
        }
        CHECK(entries_of("/proc/self/task") == threads);
        CHECK(entries_of("/proc/self/fd") == descriptors);
    }
    puts("nothing is left");
    return 0;
}
