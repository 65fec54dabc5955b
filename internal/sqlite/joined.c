//go:build sqlite_in_c && cgo

// SQLite writes a page to the write-ahead log with two system calls, a 24-byte frame header and the page: a single reading takes ninety calls. This file
// defines a VFS on top of the default one that joins consecutive writes to a log into one.
//
// Written frames are visible to other connections only after the commit publishes the length of the log in shared memory. If commits wait for the disk,
// the log is synced before that. Therefore writes are buffered only
//   - while the connection holds the write lock: the buffer is discarded with the lock, because the next writer's frames go to the same offsets;
//   - after a commit of the same connection that was synced before it was published, until PRAGMA synchronous is set again;
//   - if SQLite does not pad the last sector with frames that it writes after the sync.
// A sync, and every other call that could observe the difference, writes the buffer first. If that fails, the call returns the error, and so does every
// later write and sync of the transaction: it cannot be committed without the lost writes, even if SQLite ignores one error.

#include <stdlib.h>
#include <string.h>

#include "vfs.h"

// ROOM holds 62 pages of 2 kB. SQLite's Unix VFS accepts less than 128 kB in one write: it masks the amount to 17 bits.
#define ROOM (126 * 1024)

// The index of the write lock among SQLite's shared-memory locks.
#define WRITE_LOCK 0

// joined is an open database or log. The file of the default VFS follows it in memory.
struct joined {
	sqlite3_file file;
	struct joined *other; // the database of a log, or the log of a database; 0 if none
	int syncs;            // database: the last commit was synced before it was published
	// log only, under its connection's write lock
	enum {UNTOUCHED, WRITTEN, SYNCED} state;
	int buffers;
	int failed;          // the error that lost buffered bytes
	sqlite3_int64 start; // offset of the buffer in the log
	int length;
	char *bytes;
	int padded; // SQLite pads the last sector
};

#define SYSTEM(file) ((sqlite3_file *)((struct joined *)(file) + 1))
#define CALL(file, method, ...) (SYSTEM(file)->pMethods->method(SYSTEM(file), ##__VA_ARGS__))

// flush_buffer writes the buffered bytes.
static int flush_buffer(struct joined *log) {
	int length = log->length;
	if (length && !log->failed) {
		log->length = 0;
		log->failed = CALL(log, xWrite, log->bytes, length, log->start);
	}
	return log->failed;
}

static int log_close(sqlite3_file *file) {
	struct joined *log = (struct joined *)file;
	int failed = flush_buffer(log), close_failed = CALL(file, xClose);
	if (log->other) log->other->other = 0;
	free(log->bytes);
	return failed ? failed : close_failed;
}

// log_read flushes only if the read overlaps the buffer: a rollback reads committed frames before it, which must work on a full disk.
static int log_read(sqlite3_file *file, void *to, int amount, sqlite3_int64 at) {
	struct joined *log = (struct joined *)file;
	if ((log->length || log->failed) && at + amount > log->start && flush_buffer(log)) return log->failed;
	return CALL(file, xRead, to, amount, at);
}

static int log_write(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at) {
	struct joined *log = (struct joined *)file;
	if (at != log->start + log->length || amount > ROOM - log->length) flush_buffer(log);
	if (log->failed) return log->failed;
	log->state = WRITTEN;
	if (log->buffers && !log->bytes) log->bytes = malloc(ROOM);
	if (!log->buffers || !log->bytes || amount > ROOM) return CALL(file, xWrite, from, amount, at);
	if (log->length == 0) log->start = at;
	memcpy(log->bytes + log->length, from, amount);
	log->length += amount;
	return SQLITE_OK;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 size) {
	int failed = flush_buffer((struct joined *)file);
	return failed ? failed : CALL(file, xTruncate, size);
}

static int log_sync(sqlite3_file *file, int flags) {
	struct joined *log = (struct joined *)file;
	int failed = flush_buffer(log);
	if (!failed) failed = CALL(file, xSync, flags);
	if (!failed && log->state == WRITTEN) log->state = SYNCED;
	return failed;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *size) {
	int failed = flush_buffer((struct joined *)file);
	return failed ? failed : CALL(file, xFileSize, size);
}

static int log_control(sqlite3_file *file, int what, void *arg) {
	int failed = flush_buffer((struct joined *)file);
	return failed ? failed : CALL(file, xFileControl, what, arg);
}

static int close_database(sqlite3_file *file) {
	struct joined *database = (struct joined *)file;
	if (database->other) database->other->other = 0;
	return CALL(file, xClose);
}

static int control(sqlite3_file *file, int what, void *arg) {
	const char *const *pragma = arg; // error text, name, value
	if (what == SQLITE_FCNTL_PRAGMA && sqlite3_stricmp(pragma[1], "synchronous") == 0 && pragma[2]) ((struct joined *)file)->syncs = 0;
	return CALL(file, xFileControl, what, arg);
}

// shm_lock discards the buffer when the write lock is released: SQLite rolled back, and no commit contains the buffered frames.
static int shm_lock(sqlite3_file *file, int first, int count, int how) {
	struct joined *database = (struct joined *)file, *log = database->other;
	if (log == 0 || first != WRITE_LOCK) return CALL(file, xShmLock, first, count, how);
	if (how & SQLITE_SHM_UNLOCK) log->state = log->buffers = log->length = log->failed = 0;
	int failed = CALL(file, xShmLock, first, count, how);
	if (failed == SQLITE_OK && how == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)) log->buffers = database->syncs && !log->padded;
	return failed;
}

// shm_barrier is called just before the length of the log is published. The log is already synced then, or its writes are not buffered. If the buffer
// is not empty, shm_barrier writes it, although it cannot return an error.
static void shm_barrier(sqlite3_file *file) {
	struct joined *database = (struct joined *)file, *log = database->other;
	if (log && log->state != UNTOUCHED) {
		flush_buffer(log);
		database->syncs = log->state == SYNCED;
		log->buffers &= database->syncs;
	}
	CALL(file, xShmBarrier);
}

// The methods that databases and logs share.
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

// Without shared memory, one connection uses the log alone, and its writes are not joined.
static const sqlite3_io_methods database_methods[] = {DATABASE(1), DATABASE(2, SHARED), DATABASE(3, SHARED, fetch, unfetch)};
// SQLite calls only methods of version 1 on a log.
static const sqlite3_io_methods log_methods = {1, log_close, log_read, log_write, log_truncate, log_sync, log_size,
	lock, unlock, check_reserved_lock, log_control, sector_size, device_characteristics};

static sqlite3_vfs *default_vfs;

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
		log->other->syncs = 0;
		log->padded = !(device_characteristics(file) & SQLITE_IOCAP_POWERSAFE_OVERWRITE);
	}
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *given) {
	if (!(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))) return default_vfs->xOpen(default_vfs, name, file, flags, given);
	memset(file, 0, sizeof(struct joined) + sizeof(sqlite3_file));
	int failed = default_vfs->xOpen(default_vfs, name, SYSTEM(file), flags, given);
	if (SYSTEM(file)->pMethods == 0) return failed; // nothing was opened
	if (flags & SQLITE_OPEN_WAL) open_log((struct joined *)file, name);
	else open_database((struct joined *)file);
	return failed;
}

// register_joined_vfs registers the VFS as "joined". All methods except opening files are those of the default VFS.
int register_joined_vfs(void) {
	static sqlite3_vfs joined;
	default_vfs = sqlite3_vfs_find(0);
	if (default_vfs == 0) return SQLITE_ERROR;
	joined = *default_vfs;
	joined.zName = "joined";
	joined.szOsFile += sizeof(struct joined);
	joined.xOpen = open_file;
	return sqlite3_vfs_register(&joined, 0);
}
