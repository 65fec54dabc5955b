package x12

// Internals for the external tests.
var (
	Encode  = Interchange.bytes
	Plain   = toBasicSet
	CentsOf = centsOf
	Decimal = Cents.decimal
	IsNPI   = isNPI
)

const (
	MaxBytes    = maxBytes
	MaxSegments = maxSegments
)
