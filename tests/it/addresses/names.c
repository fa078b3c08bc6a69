/* A host name that leads to several addresses: loaded before the C library, it answers for the name in
 * QUORUMLOCK_TEST_NAME with the numeric addresses in QUORUMLOCK_TEST_ADDRESSES, separated by commas, in that order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    lookup *real = (lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *name = getenv("QUORUMLOCK_TEST_NAME"), *addresses = getenv("QUORUMLOCK_TEST_ADDRESSES");
    if (!node || !name || !addresses || strcmp(node, name) != 0)
        return real(node, service, hints, result);
    char list[256] = {0};
    strncpy(list, addresses, sizeof list - 1);
    *result = NULL;
    struct addrinfo **end = result;
    for (char *address = strtok(list, ","); address; address = strtok(NULL, ",")) {
        int error = real(address, service, hints, end);
        if (error)
            return error;
        while (*end)
            end = &(*end)->ai_next;
    }
    return 0;
}
