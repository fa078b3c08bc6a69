/* Stands before the C library of the program: notes which children it has reaped, and ends it when it signals one of
   them. A group is signalled rightly while a child is in it that was not reaped. Each signal that was looked at leaves
   a byte in the file that SIGNALS_FILE names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };

static pid_t reaped[MOST];
static int count;

static void note(pid_t pid) {
    if (pid > 0 && count < MOST) {
        reaped[count++] = pid;
    }
}

static int was_reaped(pid_t pid) {
    for (int index = 0; index < count; index++) {
        if (reaped[index] == pid) {
            return 1;
        }
    }
    return 0;
}

static int real_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    typedef int function(idtype_t, id_t, siginfo_t *, int);
    return ((function *)dlsym(RTLD_NEXT, "waitid"))(type, id, info, options);
}

static void look(pid_t pid, int is_group) {
    siginfo_t info;
    const char *file = getenv("SIGNALS_FILE");
    int log = file ? open(file, O_CREAT | O_APPEND | O_WRONLY, 0600) : -1;
    if (log >= 0) {
        (void)!write(log, "s", 1);
        close(log);
    }
    if (was_reaped(pid) && !(is_group && real_waitid(P_PGID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)) {
        (void)!write(2, "signalled after it was reaped\n", 30);
        _exit(99);
    }
}

pid_t waitpid(pid_t pid, int *status, int options) {
    pid_t (*real)(pid_t, int *, int) = (pid_t(*)(pid_t, int *, int))dlsym(RTLD_NEXT, "waitpid");
    int own = 0;
    pid_t found = real(pid, &own, options);
    if (found > 0 && (WIFEXITED(own) || WIFSIGNALED(own))) {
        note(found);
    }
    if (status) {
        *status = own;
    }
    return found;
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    int done = real_waitid(type, id, info, options);
    if (done == 0 && info && !(options & WNOWAIT) && info->si_code != CLD_STOPPED && info->si_code != CLD_CONTINUED) {
        note(info->si_pid);
    }
    return done;
}

int kill(pid_t pid, int number) {
    int (*real)(pid_t, int) = (int (*)(pid_t, int))dlsym(RTLD_NEXT, "kill");
    look(pid < 0 ? -pid : pid, pid < 0);
    return real(pid, number);
}

int killpg(pid_t group, int number) {
    int (*real)(pid_t, int) = (int (*)(pid_t, int))dlsym(RTLD_NEXT, "killpg");
    look(group, 1);
    return real(group, number);
}
