// The file and VFS declarations of SQLite's header, which is part of the driver and which other packages cannot include. The structures have not changed
// since SQLite has a write-ahead log: new members are added at the end, and iVersion states which exist.

typedef long long sqlite3_int64;
typedef struct sqlite3_file sqlite3_file;
typedef struct sqlite3_vfs sqlite3_vfs;

typedef struct sqlite3_io_methods {
	int iVersion;
	int (*xClose)(sqlite3_file *);
	int (*xRead)(sqlite3_file *, void *, int, sqlite3_int64);
	int (*xWrite)(sqlite3_file *, const void *, int, sqlite3_int64);
	int (*xTruncate)(sqlite3_file *, sqlite3_int64);
	int (*xSync)(sqlite3_file *, int);
	int (*xFileSize)(sqlite3_file *, sqlite3_int64 *);
	int (*xLock)(sqlite3_file *, int);
	int (*xUnlock)(sqlite3_file *, int);
	int (*xCheckReservedLock)(sqlite3_file *, int *);
	int (*xFileControl)(sqlite3_file *, int, void *);
	int (*xSectorSize)(sqlite3_file *);
	int (*xDeviceCharacteristics)(sqlite3_file *);
	// from version 2 on
	int (*xShmMap)(sqlite3_file *, int, int, int, void volatile **);
	int (*xShmLock)(sqlite3_file *, int, int, int);
	void (*xShmBarrier)(sqlite3_file *);
	int (*xShmUnmap)(sqlite3_file *, int);
	// from version 3 on
	int (*xFetch)(sqlite3_file *, sqlite3_int64, int, void **);
	int (*xUnfetch)(sqlite3_file *, sqlite3_int64, void *);
} sqlite3_io_methods;

struct sqlite3_file {
	const sqlite3_io_methods *pMethods;
};

struct sqlite3_vfs {
	int iVersion;
	int szOsFile;
	int mxPathname;
	sqlite3_vfs *pNext;
	const char *zName;
	void *pAppData;
	int (*xOpen)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
	int (*xDelete)(sqlite3_vfs *, const char *, int);
	int (*xAccess)(sqlite3_vfs *, const char *, int, int *);
	int (*xFullPathname)(sqlite3_vfs *, const char *, int, char *);
	void *(*xDlOpen)(sqlite3_vfs *, const char *);
	void (*xDlError)(sqlite3_vfs *, int, char *);
	void (*(*xDlSym)(sqlite3_vfs *, void *, const char *))(void);
	void (*xDlClose)(sqlite3_vfs *, void *);
	int (*xRandomness)(sqlite3_vfs *, int, char *);
	int (*xSleep)(sqlite3_vfs *, int);
	int (*xCurrentTime)(sqlite3_vfs *, double *);
	int (*xGetLastError)(sqlite3_vfs *, int, char *);
	// from version 2 on
	int (*xCurrentTimeInt64)(sqlite3_vfs *, sqlite3_int64 *);
	// from version 3 on
	int (*xSetSystemCall)(sqlite3_vfs *, const char *, void (*)(void));
	void (*(*xGetSystemCall)(sqlite3_vfs *, const char *))(void);
	const char *(*xNextSystemCall)(sqlite3_vfs *, const char *);
};

// As in driver_c.go: weak symbols, defined in the driver's C code and resolved when the program is linked.
extern sqlite3_vfs *sqlite3_vfs_find(const char *) __attribute__((weak));
extern int sqlite3_vfs_register(sqlite3_vfs *, int) __attribute__((weak));
extern sqlite3_file *sqlite3_database_file_object(const char *) __attribute__((weak));
extern int sqlite3_stricmp(const char *, const char *) __attribute__((weak));

#define SQLITE_OK 0
#define SQLITE_ERROR 1
#define SQLITE_OPEN_MAIN_DB 0x100
#define SQLITE_OPEN_WAL 0x80000
#define SQLITE_FCNTL_PRAGMA 14
#define SQLITE_IOCAP_POWERSAFE_OVERWRITE 0x1000
#define SQLITE_SHM_UNLOCK 1
#define SQLITE_SHM_LOCK 2
#define SQLITE_SHM_EXCLUSIVE 8
