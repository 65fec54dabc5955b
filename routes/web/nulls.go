package web

// nullsOf holds the bodies of a row against what its contract lets be null.
func (d *Door) nullsOf(row Route) func(body []byte) error {
	if d.RefuseNulls == nil {
		return func([]byte) error { return nil }
	}
	return func(body []byte) error { return d.RefuseNulls(row, body) }
}
