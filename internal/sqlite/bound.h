// One crossing from Go to C for a statement, instead of one for each value and one for the step.

typedef struct sqlite3_stmt sqlite3_stmt;

enum {BOUND_NULL, BOUND_NUMBER, BOUND_REAL, BOUND_TEXT, BOUND_BLOB};

// bound is a value; number is also how many bytes a text or blob has, which follow one another elsewhere.
struct bound {
	long long number;
	double real;
	int kind;
};

// run_bound runs a statement to its end with values for all of its parameters, makes it ready for the next time and says how many rows changed.
// It returns SQLite's extended number of an error, or 0.
extern int run_bound(sqlite3_stmt *, const struct bound *values, int count, const char *bytes, long long *changes);

// error_of says what went wrong last on the connection of a statement, until something else is asked of it.
extern int error_of(sqlite3_stmt *, const char **text);
