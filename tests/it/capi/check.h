/* What the C programs of the tests have in common: a check that says where it failed, and clients made in one line. */
#ifndef CHECK_H
#define CHECK_H

#include <quorumlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A call that must succeed; what went wrong is shown. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        quorumlock_error *error = NULL;                                                                                \
        quorumlock_result result_ = (call);                                                                            \
        if (result_ != QUORUMLOCK_OK) {                                                                                \
            quorumlock_str message_ = quorumlock_error_message(error);                                                 \
            fprintf(stderr, "%s:%d: %s gave %d: %.*s\n", __FILE__, __LINE__, #call, (int)result_,                      \
                (int)message_.length, message_.data);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
        CHECK(error == NULL);                                                                                          \
    } while (0)

/* Whether a text is exactly this one. */
static inline int is(quorumlock_str text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.data, other, text.length) == 0;
}

static inline int contains(quorumlock_str text, const char *part)
{
    size_t at, length = strlen(part);
    for (at = 0; at + length <= text.length; at++) {
        if (memcmp(text.data + at, part, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* A setting that can be used. */
static inline void set(quorumlock_config *config, const char *name, const char *value)
{
    MUST(quorumlock_config_set(config, name, strlen(name), value, strlen(value), &error));
}

/* Whether a setting is refused by a message with these words. */
static inline int refuses(quorumlock_config *config, const char *name, const char *value, const char *words)
{
    quorumlock_error *error = NULL;
    int is_refused
        = quorumlock_config_set(config, name, strlen(name), value, strlen(value), &error) == QUORUMLOCK_CONFIG
        && contains(quorumlock_error_message(error), words);
    quorumlock_error_free(error);
    return is_refused;
}

/* A configuration of these nodes that gives them time: a busy machine is no reason to fail. */
static inline quorumlock_config *config_of(char **urls, int count)
{
    quorumlock_config *config = quorumlock_config_new();
    int index;
    CHECK(config != NULL);
    for (index = 0; index < count; index++) {
        CHECK(quorumlock_config_add_node(config, urls[index], strlen(urls[index])) == QUORUMLOCK_OK);
    }
    set(config, "node_timeout", "5s");
    return config;
}

static inline quorumlock_client *client_of(char **urls, int count)
{
    quorumlock_config *config = config_of(urls, count);
    quorumlock_client *client = NULL;
    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    return client;
}

static inline quorumlock_mutex *mutex_of_kind(const quorumlock_client *client, const char *name, int kind)
{
    quorumlock_mutex *mutex = NULL;
    CHECK(quorumlock_client_mutex(client, name, strlen(name), kind, &mutex) == QUORUMLOCK_OK);
    return mutex;
}

static inline quorumlock_mutex *mutex_of(const quorumlock_client *client, const char *name)
{
    return mutex_of_kind(client, name, QUORUMLOCK_LOCK_PLAIN);
}

/* Takes a lock that is free. On a busy machine an attempt may come too late to count what it has read of the nodes. */
static inline quorumlock_guard *take(const quorumlock_mutex *mutex)
{
    quorumlock_guard *guard = NULL;
    MUST(quorumlock_mutex_lock(mutex, 10000, NULL, &guard, &error));
    CHECK(guard != NULL);
    return guard;
}

/* Frees a mutex whose settings cannot be used, when an attempt to take it has said so. */
static inline void is_refused(quorumlock_mutex *mutex)
{
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;
    CHECK(quorumlock_mutex_try_lock(mutex, &guard, &error) == QUORUMLOCK_CONFIG && guard == NULL && error != NULL);
    quorumlock_error_free(error);
    quorumlock_mutex_free(mutex);
}

#endif
