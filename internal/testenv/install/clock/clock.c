// A wall clock that a test sets. Loaded into a program by LD_PRELOAD, it adds
// an offset to the wall clock that the program reads from the C library. The
// offset, in nanoseconds, is the first 8 bytes of the file ELECTION_TEST_CLOCK,
// and may change at any time. Monotonic clocks are left alone.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static const volatile int64_t *offset; // NULL until it is known

static void fail(const char *what) {
	if (write(2, what, strlen(what)) < 0) {
		// There is nobody to tell.
	}
	_exit(127);
}

__attribute__((constructor)) static void find_offset(void) {
	const char *file = getenv("ELECTION_TEST_CLOCK");
	if (file == NULL) {
		fail("clock: ELECTION_TEST_CLOCK is not set\n");
	}
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || page == MAP_FAILED) {
		fail("clock: ELECTION_TEST_CLOCK cannot be read\n");
	}
	close(fd);
	offset = page;
}

// The system call itself is used: the library's function is the one that is
// replaced, and to look for the one behind it would take memory, which programs
// with allocators of their own cannot give yet.
int clock_gettime(clockid_t clock, struct timespec *now) {
	if (syscall(SYS_clock_gettime, clock, now) != 0) {
		return -1;
	}
	if (offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t t = now->tv_sec * SECOND + now->tv_nsec + *offset;
		now->tv_sec = t / SECOND;
		now->tv_nsec = t % SECOND;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
	struct timespec t;
	if (zone != NULL) {
		memset(zone, 0, sizeof(struct timezone));
	}
	if (clock_gettime(CLOCK_REALTIME, &t) != 0) {
		return -1;
	}
	now->tv_sec = t.tv_sec;
	now->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now) {
	struct timespec t;
	if (clock_gettime(CLOCK_REALTIME, &t) != 0) {
		return -1;
	}
	if (now != NULL) {
		*now = t.tv_sec;
	}
	return t.tv_sec;
}

#ifdef __GLIBC__
// Who waits until a time of the wall clock has taken that from here, and the
// kernel would wait by its own: MariaDB waits for locks so. Whether a condition
// goes by the monotonic clock is the second bit of __wrefs (nptl, since 2.25).
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
	if (cond->__data.__wrefs & 2) {
		return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, until);
	}
	int64_t t = until->tv_sec * SECOND + until->tv_nsec - (offset != NULL ? *offset : 0);
	struct timespec real = {.tv_sec = t / SECOND, .tv_nsec = t % SECOND};
	return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &real);
}
#endif
