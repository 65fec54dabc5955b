package vitals

// Settles reports whether a reading of this origin is reliable enough to settle what one of another origin raised: what a device
// measured, or staff vouch for, is not settled by what a patient typed. Rows from before origins were kept count as of a device.
// Source: docs/decisions/alerts.md, "Who settles what".
func (o Origin) Settles(raised Origin) bool { return o != OriginPatient || raised == OriginPatient }
