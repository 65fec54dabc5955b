package alerts

// InForceMemory combines stored bounds, each pair of texts once: most patients have none of their own, so that a page of
// them reads the practice's a single time. It serves one goroutine.
type InForceMemory map[[2]string]Thresholds

// NewInForce returns an empty memory.
func NewInForce() InForceMemory { return InForceMemory{} }

// Of is what is in force under the stored bounds of the practice and of a patient; nil or "" for none.
func (m InForceMemory) Of(practice, own *string) (Thresholds, error) {
	key := [2]string{orNone(practice), orNone(own)}
	if known, ok := m[key]; ok {
		return known, nil
	}
	defaults, err := ParseBounds(key[0])
	if err != nil {
		return Thresholds{}, err
	}
	bounds, err := ParseBounds(key[1])
	if err != nil {
		return Thresholds{}, err
	}
	m[key] = InForce(defaults, bounds)
	return m[key], nil
}

func orNone(stored *string) string {
	if stored == nil {
		return ""
	}
	return *stored
}
