package config

import "strings"

// Letterhead returns the practice's address and phone number in one line, or "" if none is set.
func (p Practice) Letterhead() string {
	place := strings.TrimSpace(strings.Join(strings.Fields(p.City+" "+p.State+" "+postcode(p.Zip)), " "))
	phone := p.Phone
	if len(phone) == 10 {
		phone = "(" + phone[:3] + ") " + phone[3:6] + "-" + phone[6:]
	}
	var parts []string
	for _, part := range []string{p.Address, place} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	line := strings.Join(parts, ", ")
	if line != "" && phone != "" {
		line += " · "
	}
	return line + phone
}

// postcode returns the five-digit ZIP code; claims use all nine digits.
func postcode(zip string) string {
	if len(zip) >= 5 {
		return zip[:5]
	}
	return zip
}
