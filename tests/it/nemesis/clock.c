/* A wall clock that can be stepped: loaded into a server before its C library, it adds to the time what a file says.
 *
 * The file is named by QUORUMLOCK_NEMESIS_CLOCK and holds one signed number of microseconds, eight bytes in the
 * machine's order. It is mapped, so that a step is felt at once and costs nothing. Clocks that count from boot are left
 * alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("QUORUMLOCK_NEMESIS_CLOCK");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (ftruncate(file, sizeof *offset) == 0) {
        void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            offset = mapped;
    }
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t micros = *offset;
        int64_t nanos = time->tv_nsec + micros % 1000000 * 1000;
        time->tv_sec += micros / 1000000 + (nanos >= 1000000000) - (nanos < 0);
        time->tv_nsec = nanos + (nanos < 0) * 1000000000 - (nanos >= 1000000000) * 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}
