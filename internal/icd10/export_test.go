package icd10

import "bytes"

// Codes are all codes, with their dots.
func (s *Set) Codes() (list []string) {
	for i := range s.Len() {
		list = append(list, Dotted(s.bare(i)))
	}
	return list
}

// Reread unpacks the set of the binary once more.
func Reread() error {
	_, err := Unpack(bytes.NewReader(packed))
	return err
}
