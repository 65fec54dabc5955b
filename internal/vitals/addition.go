package vitals

// Add returns the reading with what else its device measured at the same time. fits is false when the reading says otherwise.
func (r Reading) Add(a Reading) (whole Reading, fits bool) {
	fits = r.Kind == a.Kind
	for i, value := range a.values {
		if value != nil {
			fits = fits && (r.values[i] == nil || *r.values[i] == *value)
			r.values[i] = value
		}
	}
	for i, word := range a.marks {
		if word != "" {
			fits = fits && (r.marks[i] == "" || r.marks[i] == word)
			r.marks[i] = word
		}
	}
	return r, fits
}

// Beyond returns what the reading says and the other one does not.
func (r Reading) Beyond(other Reading) Reading {
	for i, value := range r.values {
		if value != nil && other.values[i] != nil && *value == *other.values[i] {
			r.values[i] = nil
		}
	}
	for i, word := range r.marks {
		if word == other.marks[i] {
			r.marks[i] = ""
		}
	}
	return r
}

// As returns the reading without what its kind may leave out and the other one does.
func (r Reading) As(other Reading) Reading {
	for _, p := range r.Kind.Definition().May {
		if other.values[p.place] == nil {
			r.values[p.place] = nil
		}
	}
	for _, m := range r.Kind.Definition().Marks {
		if other.marks[m.place] == "" {
			r.marks[m.place] = ""
		}
	}
	return r
}

// Columns are where what the reading says is stored.
func (r Reading) Columns() (names []string) {
	for _, p := range Parameters {
		if r.values[p.place] != nil {
			names = append(names, p.Column)
		}
	}
	for _, m := range Marks {
		if r.marks[m.place] != "" {
			names = append(names, m.Name)
		}
	}
	return names
}
