package x12

// Locate completes an error from the file that was sent, by the error's position in the transaction
// set: it sets the claim if the segment belongs to exactly one, and the values that the
// acknowledgment omits. It removes values that were not sent there, which may be another patient's.
// If another segment is there, the error is about another file, and Locate does nothing. Source:
// 005010X231A1, IK302 "Segment Position in Transaction Set", ST being 1.
func (e *SegmentError) Locate(sent []Interchange, controlNumber string) {
	for _, in := range sent {
		for _, group := range in.Groups {
			for _, set := range group.Sets {
				if set.ControlNumber == controlNumber {
					e.locateIn(set.Segments)
					return
				}
			}
		}
	}
}

func (e *SegmentError) locateIn(segments []Segment) {
	i := e.Position - 2 // ST is not among them
	if i < 0 || i >= len(segments) || segments[i].ID != e.Segment {
		return
	}
	if e.Claim = soleClaimOf(segments, i); e.Claim == "" {
		return
	}
	for n, x := range e.Elements {
		value := segments[i].Element(x.Position)
		if x.Component > 0 {
			value = segments[i].Component(x.Position, x.Component)
		}
		if x.Value != "" && x.Value != value {
			value = ""
		}
		e.Elements[n].Value = value
	}
}

// FindMemberID returns the member id with which a claim was sent, by its control number; "" if the file has no such claim. Source: 005010X222A1, NM109 of loop
// 2010BA, which is before the claim; that of another insurance is after it.
func FindMemberID(sent []Interchange, claim string) (member string) {
	for _, in := range sent {
		for _, group := range in.Groups {
			for _, set := range group.Sets {
				inSubscriber := false
				for _, s := range set.Segments {
					switch {
					case s.ID == "HL":
						inSubscriber = true
					case s.ID == "NM1" && s.Element(1) == "IL" && inSubscriber:
						member = s.Element(9)
					case s.ID == "CLM" && s.Element(1) == claim:
						return member
					case s.ID == "CLM":
						inSubscriber = false
					}
				}
			}
		}
	}
	return ""
}

// soleClaimOf returns the control number of the claim that a segment belongs to, or of the only one of its provider, subscriber or patient; "" for none
// or several. Source: 005010X222A1, HL03: 20, 22 and 23 from the provider down.
func soleClaimOf(segments []Segment, i int) (claim string) {
	for ; i >= 0 && segments[i].ID != "CLM" && segments[i].ID != "HL"; i-- {
	}
	switch {
	case i < 0:
		return ""
	case segments[i].ID == "CLM":
		return segments[i].Element(1)
	}
	level := segments[i].Element(3)
	for _, s := range segments[i+1:] {
		if s.ID == "HL" && s.Element(3) <= level {
			break
		}
		if s.ID != "CLM" {
			continue
		}
		if claim != "" {
			return ""
		}
		claim = s.Element(1)
	}
	return claim
}
