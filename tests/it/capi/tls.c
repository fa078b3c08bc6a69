/*
 * What is wrong with a node, and what of it a C program can tell apart, over TLS.
 *
 *     tls URL ROOTS [CERTIFICATE KEY]    with the roots of a file, and a client certificate of two files
 *     tls-env                            with all of that from variables
 *
 * Takes the lock "k" and releases it, and prints "all kept"; or prints cause, number, whether it is permanent, message.
 */
#include "check.h"

static char *text_of(const char *path)
{
    static char texts[2][65536];
    static int used;
    FILE *file = fopen(path, "rb");
    char *text = texts[used++];
    CHECK(file != NULL);
    text[fread(text, 1, sizeof texts[0] - 1, file)] = '\0';
    CHECK(fclose(file) == 0);
    return text;
}

static quorumlock_config *config_by(char **arguments, int count)
{
    quorumlock_config *config = NULL;
    if (count < 3) {
        MUST(quorumlock_config_from_env("LOCKS_", 6, &config, &error));
        /* Says it once more, and takes nothing back. */
        set(config, "prefix", "");
        return config;
    }
    config = config_of(arguments + 1, 1);
    set(config, "cacert", arguments[2]);
    if (count > 4) {
        char *certificate = text_of(arguments[3]), *key = text_of(arguments[4]);
        CHECK(quorumlock_config_set_tls_identity_pem(config, certificate, strlen(certificate), key, strlen(key))
            == QUORUMLOCK_OK);
    }
    return config;
}

int main(int count, char **arguments)
{
    quorumlock_config *config = config_by(arguments, count);
    quorumlock_client *client = NULL;
    quorumlock_mutex *mutex;
    quorumlock_guard *guard = NULL;
    quorumlock_error *error = NULL;

    MUST(quorumlock_client_new(config, &client, &error));
    quorumlock_config_free(config);
    mutex = mutex_of(client, "k");
    if (quorumlock_mutex_try_lock(mutex, &guard, &error) == QUORUMLOCK_OK) {
        MUST(quorumlock_guard_unlock(guard, &error));
        quorumlock_guard_free(guard);
        puts("all kept");
    } else {
        const quorumlock_fault *fault = quorumlock_error_fault(error, 0);
        quorumlock_str message = quorumlock_fault_message(fault);
        printf("%d %d %d %.*s\n", (int)quorumlock_fault_cause(fault), (int)quorumlock_fault_number(fault),
            quorumlock_error_is_permanent(error), (int)message.length, message.data);
        quorumlock_error_free(error);
    }
    quorumlock_mutex_free(mutex);
    quorumlock_client_free(client);
    return 0;
}
