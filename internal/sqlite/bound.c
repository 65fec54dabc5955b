//go:build sqlite_in_c && cgo

#include "bound.h"

// As in driver_c.go: weak symbols, defined in the driver's C code and resolved when the program is linked.
extern int sqlite3_bind_parameter_count(sqlite3_stmt *) __attribute__((weak));
extern int sqlite3_bind_null(sqlite3_stmt *, int) __attribute__((weak));
extern int sqlite3_bind_int64(sqlite3_stmt *, int, long long) __attribute__((weak));
extern int sqlite3_bind_double(sqlite3_stmt *, int, double) __attribute__((weak));
extern int sqlite3_bind_text64(sqlite3_stmt *, int, const char *, unsigned long long, void (*)(void *), unsigned char) __attribute__((weak));
extern int sqlite3_bind_blob64(sqlite3_stmt *, int, const void *, unsigned long long, void (*)(void *)) __attribute__((weak));
extern int sqlite3_step(sqlite3_stmt *) __attribute__((weak));
extern int sqlite3_reset(sqlite3_stmt *) __attribute__((weak));
extern int sqlite3_clear_bindings(sqlite3_stmt *) __attribute__((weak));
extern struct sqlite3 *sqlite3_db_handle(sqlite3_stmt *) __attribute__((weak));
extern long long sqlite3_changes64(struct sqlite3 *) __attribute__((weak));
extern int sqlite3_extended_errcode(struct sqlite3 *) __attribute__((weak));
extern const char *sqlite3_errmsg(struct sqlite3 *) __attribute__((weak));

#define SQLITE_OK 0
#define SQLITE_RANGE 25
#define SQLITE_ROW 100
#define SQLITE_UTF8 1
#define SQLITE_STATIC 0 // SQLite does not copy the value

static int bind(sqlite3_stmt *statement, int at, const struct bound *value, const char *bytes) {
	switch (value->kind) {
	case BOUND_NUMBER: return sqlite3_bind_int64(statement, at, value->number);
	case BOUND_REAL: return sqlite3_bind_double(statement, at, value->real);
	case BOUND_TEXT: return sqlite3_bind_text64(statement, at, bytes, value->number, SQLITE_STATIC, SQLITE_UTF8);
	case BOUND_BLOB: return sqlite3_bind_blob64(statement, at, bytes, value->number, SQLITE_STATIC);
	}
	return sqlite3_bind_null(statement, at);
}

int run_bound(sqlite3_stmt *statement, const struct bound *values, int count, const char *bytes, long long *changes) {
	sqlite3_reset(statement);
	int failed = sqlite3_bind_parameter_count(statement) == count ? SQLITE_OK : SQLITE_RANGE;
	for (int i = 0; i < count && !failed; i++) {
		failed = bind(statement, i + 1, values + i, bytes);
		if (values[i].kind >= BOUND_TEXT) bytes += values[i].number;
	}
	if (!failed) {
		while (sqlite3_step(statement) == SQLITE_ROW) {}
		failed = sqlite3_reset(statement); // the result of the last step
		*changes = sqlite3_changes64(sqlite3_db_handle(statement));
	}
	sqlite3_clear_bindings(statement); // the caller owns the bound memory
	return failed;
}

int error_of(sqlite3_stmt *statement, const char **text) {
	struct sqlite3 *db = sqlite3_db_handle(statement);
	*text = sqlite3_errmsg(db);
	return sqlite3_extended_errcode(db);
}
