//go:build sqlite_in_c && cgo

#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "bound.h"

// As in driver_c.go: weak symbols, defined in the driver's C code and resolved when the program is linked.
extern struct sqlite3 *sqlite3_db_handle(sqlite3_stmt *) __attribute__((weak));
extern int sqlite3_busy_handler(struct sqlite3 *, int (*)(void *, int), void *) __attribute__((weak));

// wait waits a millisecond for a lock, and returns 0 after the timeout. SQLite's own handler looks only every 100 milliseconds, and a service under full load
// frees the lock for less than one, so that a command beside it would not get the lock for minutes.
static int wait(void *timeout, int tries) {
	static __thread struct timespec since;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (tries == 0) since = now;
	if ((now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000 >= (intptr_t)timeout) return 0;
	usleep(1000);
	return 1;
}

int set_lock_timeout(sqlite3_stmt *statement, int milliseconds) {
	return sqlite3_busy_handler(sqlite3_db_handle(statement), milliseconds > 0 ? wait : 0, (void *)(intptr_t)milliseconds);
}
