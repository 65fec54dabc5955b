package retention

// Tables lists the tables that rows are removed from.
func Tables() (tables []string) {
	for _, r := range (Periods{}).rules() {
		tables = append(tables, r.rows.Table)
	}
	return tables
}
