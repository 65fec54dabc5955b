// Runs a statement with one call from Go to C, instead of one for each value and one for the step.

typedef struct sqlite3_stmt sqlite3_stmt;

enum {BOUND_NULL, BOUND_NUMBER, BOUND_REAL, BOUND_TEXT, BOUND_BLOB};

// bound is a value to bind. For a text or blob, number is its length in bytes; the bytes of all values are passed in one buffer.
struct bound {
	long long number;
	double real;
	int kind;
};

// run_bound binds values to all parameters of a statement, runs it to its end, resets it, and sets changes to the number of changed rows.
// It returns SQLite's extended error code, or 0.
extern int run_bound(sqlite3_stmt *, const struct bound *values, int count, const char *bytes, long long *changes);

// error_of returns the last extended error code of a statement's connection and its text, which is valid until the next call on the connection.
extern int error_of(sqlite3_stmt *, const char **text);

// set_lock_timeout sets how long a statement's connection waits for locks of other connections. It returns SQLite's error code, or 0.
extern int set_lock_timeout(sqlite3_stmt *, int milliseconds);
