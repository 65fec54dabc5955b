package icd10

import "bytes"

// Codes returns all codes, with their dots.
func (s *Set) Codes() (list []string) {
	for i := range s.Len() {
		list = append(list, Dotted(s.bare(i)))
	}
	return list
}

// Reread unpacks the embedded set again.
func Reread() error {
	_, err := Unpack(bytes.NewReader(packed))
	return err
}
