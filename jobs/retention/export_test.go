package retention

// Tables lists the tables from which rows are removed.
func Tables() (tables []string) {
	for _, r := range (Periods{}).rules() {
		tables = append(tables, r.rows.Table)
	}
	return tables
}
