# Runs a file of queries over exported files with DuckDB, and prints as JSON what each that selects something answers.
import json
import sys

import duckdb

place, queries = sys.argv[1:]
database = duckdb.connect()
database.execute("SET TimeZone = 'UTC'")
database.execute("SET VARIABLE exports = '" + place.replace("'", "''") + "'")
answers = []
for statement in database.extract_statements(open(queries).read()):
    database.execute(statement)
    if statement.type == duckdb.StatementType.SELECT:
        answers.append([list(row) for row in database.fetchall()])
print(json.dumps(answers, separators=(",", ":")))
