package x12

// What the tests of the package's outside look at inside.
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
