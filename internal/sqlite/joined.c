//go:build sqlite_in_c && cgo

// SQLite writes a page into the write-ahead log by two calls of the system, 24 bytes that say which page it is and then the page: a reading alone
// takes ninety. Here is the system's file system again, under a name of its own, in which writes into a log that continue one another become one.
//
// What is written counts for nobody until the commit publishes how long the log is, in memory that all connections share, and where commits wait for
// the disk that comes after the log was synced. So writes are gathered only
//   - while the connection holds the write lock: with it ends what was gathered, for the next writer's pages come to the same places;
//   - after a commit of the same connection that was synced before it was published, until PRAGMA synchronous is set again;
//   - where SQLite does not fill up the last sector by frames that it writes after the sync.
// A sync writes what was gathered first, and so does everything else that could tell the difference. When that fails, whoever asked is told, and
// so is every later write and sync of the transaction: it cannot be committed without what was lost, whatever SQLite would make of one error.

#include <stdlib.h>
#include <string.h>

#include "vfs.h"

// ROOM is for 62 pages of 2 kB. SQLite's own files for Unix take fewer than 128 kB at once: of a greater amount they look at the last 17 bits only.
#define ROOM (126 * 1024)

// SQLite's number of the write lock among those of the shared memory.
#define WRITE_LOCK 0

// joined is an open database or log; the system's file stands behind it in memory.
struct joined {
	sqlite3_file file;
	struct joined *other; // of a log its database, of a database its log; 0 while it has none
	int waits;            // of a database: its last commit was synced before it was published
	// of a log, under its connection's write lock
	enum {UNTOUCHED, WRITTEN, SYNCED} state;
	int gathers;
	int failed;          // the error by which gathered bytes were lost
	sqlite3_int64 start; // where in the log they begin
	int length;
	char *bytes;
	int padded; // SQLite fills up its last sector
};

#define SYSTEM(file) ((sqlite3_file *)((struct joined *)(file) + 1))
#define CALL(file, method, ...) (SYSTEM(file)->pMethods->method(SYSTEM(file), ##__VA_ARGS__))

// hand_on writes what was gathered.
static int hand_on(struct joined *log) {
	int length = log->length;
	if (length && !log->failed) {
		log->length = 0;
		log->failed = CALL(log, xWrite, log->bytes, length, log->start);
	}
	return log->failed;
}

static int log_close(sqlite3_file *file) {
	struct joined *log = (struct joined *)file;
	int failed = hand_on(log), not_closed = CALL(file, xClose);
	if (log->other) log->other->other = 0;
	free(log->bytes);
	return failed ? failed : not_closed;
}

// log_read reads what was committed past what is gathered: a rollback does so, and a full disk must not keep it from that.
static int log_read(sqlite3_file *file, void *to, int amount, sqlite3_int64 at) {
	struct joined *log = (struct joined *)file;
	if ((log->length || log->failed) && at + amount > log->start && hand_on(log)) return log->failed;
	return CALL(file, xRead, to, amount, at);
}

static int log_write(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at) {
	struct joined *log = (struct joined *)file;
	if (at != log->start + log->length || amount > ROOM - log->length) hand_on(log);
	if (log->failed) return log->failed;
	log->state = WRITTEN;
	if (log->gathers && !log->bytes) log->bytes = malloc(ROOM);
	if (!log->gathers || !log->bytes || amount > ROOM) return CALL(file, xWrite, from, amount, at);
	if (log->length == 0) log->start = at;
	memcpy(log->bytes + log->length, from, amount);
	log->length += amount;
	return SQLITE_OK;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size) {
	int failed = hand_on((struct joined *)file);
	return failed ? failed : CALL(file, xTruncate, size);
}

static int log_sync(sqlite3_file *file, int flags) {
	struct joined *log = (struct joined *)file;
	int failed = hand_on(log);
	if (!failed) failed = CALL(file, xSync, flags);
	if (!failed && log->state == WRITTEN) log->state = SYNCED;
	return failed;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size) {
	int failed = hand_on((struct joined *)file);
	return failed ? failed : CALL(file, xFileSize, size);
}

static int log_control(sqlite3_file *file, int what, void *arg) {
	int failed = hand_on((struct joined *)file);
	return failed ? failed : CALL(file, xFileControl, what, arg);
}

static int close_database(sqlite3_file *file) {
	struct joined *database = (struct joined *)file;
	if (database->other) database->other->other = 0;
	return CALL(file, xClose);
}

static int control(sqlite3_file *file, int what, void *arg) {
	const char *const *pragma = arg; // an error's text, its name, its value
	if (what == SQLITE_FCNTL_PRAGMA && sqlite3_stricmp(pragma[1], "synchronous") == 0 && pragma[2]) ((struct joined *)file)->waits = 0;
	return CALL(file, xFileControl, what, arg);
}

// shm_lock forgets, as the write lock is let go, what is not written by then: no commit was of it. SQLite has rolled back.
static int shm_lock(sqlite3_file *file, int first, int count, int how) {
	struct joined *database = (struct joined *)file, *log = database->other;
	if (log == 0 || first != WRITE_LOCK) return CALL(file, xShmLock, first, count, how);
	if (how & SQLITE_SHM_UNLOCK) log->state = log->gathers = log->length = log->failed = 0;
	int failed = CALL(file, xShmLock, first, count, how);
	if (failed == SQLITE_OK && how == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)) log->gathers = database->waits && !log->padded;
	return failed;
}

// shm_barrier comes just before the length of the log is published. By then the log was synced, or it is not one whose writes are gathered; should
// some be all the same, they are written, though nobody could be told of an error.
static void shm_barrier(sqlite3_file *file) {
	struct joined *database = (struct joined *)file, *log = database->other;
	if (log && log->state != UNTOUCHED) {
		hand_on(log);
		database->waits = log->state == SYNCED;
		log->gathers &= database->waits;
	}
	CALL(file, xShmBarrier);
}

// What is the same for both.
static int read_through(sqlite3_file *file, void *to, int amount, sqlite3_int64 at) { return CALL(file, xRead, to, amount, at); }
static int write_through(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at) { return CALL(file, xWrite, from, amount, at); }
static int truncate_file(sqlite3_file *file, sqlite3_int64 size) { return CALL(file, xTruncate, size); }
static int sync_file(sqlite3_file *file, int flags) { return CALL(file, xSync, flags); }
static int file_size(sqlite3_file *file, sqlite3_int64 *size) { return CALL(file, xFileSize, size); }
static int lock(sqlite3_file *file, int level) { return CALL(file, xLock, level); }
static int unlock(sqlite3_file *file, int level) { return CALL(file, xUnlock, level); }
static int check_reserved_lock(sqlite3_file *file, int *reserved) { return CALL(file, xCheckReservedLock, reserved); }
static int sector_size(sqlite3_file *file) { return CALL(file, xSectorSize); }
static int device_characteristics(sqlite3_file *file) { return CALL(file, xDeviceCharacteristics); }
static int shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at) { return CALL(file, xShmMap, page, size, extend, at); }
static int shm_unmap(sqlite3_file *file, int and_delete) { return CALL(file, xShmUnmap, and_delete); }
static int fetch(sqlite3_file *file, sqlite3_int64 at, int amount, void **page) { return CALL(file, xFetch, at, amount, page); }
static int unfetch(sqlite3_file *file, sqlite3_int64 at, void *page) { return CALL(file, xUnfetch, at, page); }

#define DATABASE(version, ...) \
	{version, close_database, read_through, write_through, truncate_file, sync_file, file_size, lock, unlock, check_reserved_lock, control, \
	 sector_size, device_characteristics, ##__VA_ARGS__}
#define SHARED shm_map, shm_lock, shm_barrier, shm_unmap

// Without shared memory a log is used by one connection alone, and as it was.
static const sqlite3_io_methods database_methods[] = {DATABASE(1), DATABASE(2, SHARED), DATABASE(3, SHARED, fetch, unfetch)};
// A log is asked for nothing beyond version 1.
static const sqlite3_io_methods log_methods = {1, log_close, log_read, log_write, log_truncate, log_sync, log_size,
	lock, unlock, check_reserved_lock, log_control, sector_size, device_characteristics};

static sqlite3_vfs *usual;

static void open_database(struct joined *database) {
	const sqlite3_io_methods *methods = SYSTEM(database)->pMethods;
	int version = methods->iVersion < 2 || methods->xShmMap == 0 ? 1 : methods->iVersion < 3 ? 2 : 3;
	database->file.pMethods = &database_methods[version - 1];
}

static void open_log(struct joined *log, const char *name) {
	log->file.pMethods = &log_methods;
	sqlite3_file *file = sqlite3_database_file_object(name);
	if (file && file->pMethods && file->pMethods->xShmLock == shm_lock) {
		log->other = (struct joined *)file;
		log->other->other = log;
		log->other->waits = 0;
		log->padded = !(device_characteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE);
	}
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given) {
	if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))) return usual->xOpen(usual, name, file, flags, given);
	memset(file, 0, sizeof(struct joined) + sizeof(sqlite3_file));
	int failed = usual->xOpen(usual, name, SYSTEM(file), flags, given);
	if (SYSTEM(file)->pMethods == 0) return failed; // there is nothing to close
	if (flags & SQLITE_OPEN_WAL) open_log((struct joined *)file, name);
	else open_database((struct joined *)file);
	return failed;
}

// add_joined makes the file system known as "joined". All but its files are the system's own.
int add_joined(void) {
	static sqlite3_vfs joined;
	usual = sqlite3_vfs_find(0);
	if (usual == 0) return SQLITE_ERROR;
	joined = *usual;
	joined.zName = "joined";
	joined.szOsFile += sizeof(struct joined);
	joined.xOpen = open_file;
	return sqlite3_vfs_register(&joined, 0);
}
