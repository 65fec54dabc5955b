package config

import "strings"

// Letterhead is where the practice is and how to call it, in one line; "" where nothing is set.
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

// postcode keeps the five digits that people know; claims want all nine.
func postcode(zip string) string {
	if len(zip) >= 5 {
		return zip[:5]
	}
	return zip
}
