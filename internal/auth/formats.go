package auth

import (
	"regexp"
	"strings"

	"github.com/vigilhealth/vigil/internal/input"
)

// emailFormat is what an account's address may be, folded. Other scripts stay out: a letter that looks like another must not make a second
// account that looks like the first.
var emailFormat = regexp.MustCompile(`^[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_\x60{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$`)

func validEmail(folded string) bool {
	return len(folded) <= 254 && strings.LastIndexByte(folded, '@') <= 64 && emailFormat.MatchString(folded)
}

const msgEmail = "Must be a valid e-mail address."

func readNPI(c *input.Checks, f input.String) string {
	text := c.Text("npi", f, input.Optional(10))
	if text != "" && !ValidNPI(text) {
		c.Reject("npi", "Must be ten digits with a valid check digit.")
	}
	return text
}

// ValidNPI checks a National Provider Identifier: ten digits, the last by the Luhn formula over "80840" and the first nine (45 CFR 162.406).
func ValidNPI(npi string) bool {
	if len(npi) != 10 || input.Digits(npi) != npi || npi[0] != '1' && npi[0] != '2' {
		return false
	}
	sum := 24 // what the constant prefix 80840 adds
	for i := range 10 {
		digit := int(npi[i] - '0')
		if i%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}
