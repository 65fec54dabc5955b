package vitals

// Add returns the reading with what else its device measured at the same time. fits is false when the reading says otherwise.
func (r Reading) Add(a Reading) (whole Reading, fits bool) {
	fits = r.Kind == a.Kind
	if a.Pulse != nil {
		fits = fits && (r.Pulse == nil || *r.Pulse == *a.Pulse)
		r.Pulse = a.Pulse
	}
	if a.IrregularHeartbeat != nil {
		fits = fits && (r.IrregularHeartbeat == nil || *r.IrregularHeartbeat == *a.IrregularHeartbeat)
		r.IrregularHeartbeat = a.IrregularHeartbeat
	}
	return r, fits
}

// As returns the reading without what could be added to the other one and is not there.
func (r Reading) As(other Reading) Reading {
	if other.Pulse == nil {
		r.Pulse = nil
	}
	if other.IrregularHeartbeat == nil {
		r.IrregularHeartbeat = nil
	}
	return r
}
