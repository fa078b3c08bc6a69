/* A resolver whose answer for "node.test" is in a file: an address, "hang" or "fail". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
    look_up *real = (look_up *)dlsym(RTLD_NEXT, "getaddrinfo");
    char answer[64] = "fail";
    if (node != NULL && strcmp(node, "node.test") == 0) {
        const char *path = getenv("QUORUMLOCK_TEST_RESOLVER");
        FILE *file = path != NULL ? fopen(path, "r") : NULL;
        if (file != NULL) {
            if (fscanf(file, "%63s", answer) != 1) {
                strcpy(answer, "fail");
            }
            fclose(file);
        }
        if (strcmp(answer, "hang") == 0) {
            sleep(30);
        }
        if (answer[0] < '0' || answer[0] > '9') {
            return EAI_NONAME;
        }
        node = answer;
    }
    return real(node, service, hints, result);
}
