package auth

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Lengths of passwords. What bcrypt would not read is refused, never cut: a longer password would match by its beginning alone.
const (
	minPasswordCharacters = 12
	maxPasswordBytes      = 71
)

// product is a word that a password may not come down to, like the names of its owner.
const product = "vigil"

//go:embed common_passwords.txt
var commonPasswordList string

var commonPasswords = sync.OnceValue(func() map[string]bool {
	common := map[string]bool{}
	for line := range strings.Lines(commonPasswordList) {
		if word := strings.TrimSpace(line); word != "" && !strings.HasPrefix(line, "# ") {
			common[strings.ToLower(word)] = true
		}
	}
	return common
})

// Owner is whose password it is to be: what others know of them is no secret.
type Owner struct{ Email, FirstName, LastName string }

// PasswordProblems says which rules of the password policy a password breaks, one message each.
// Source: docs/decisions/authentication.md, "Password policy errors".
func PasswordProblems(password string, owner Owner) (broken []string) {
	has := kindsIn(password)
	rules := []struct {
		kept    bool
		message string
	}{
		{utf8.RuneCountInString(password) >= minPasswordCharacters, "Must have at least 12 characters."},
		{len(password) <= maxPasswordBytes, "Must have no more than 71 bytes in UTF-8."},
		{has["upper"], "Must have an upper-case letter."},
		{has["lower"], "Must have a lower-case letter."},
		{has["digit"], "Must have a digit."},
		{has["special"], "Must have a special character."},
		{!commonPasswords()[strings.ToLower(password)], "Is one of the most common passwords."},
		{owner.Email == "" || !strings.Contains(strings.ToLower(password), FoldEmail(owner.Email)), "Must not contain your e-mail address."},
		{!owner.knownBy(password), "Must not be your name, your e-mail address or the name of this service with digits and signs added."},
	}
	for _, rule := range rules {
		if !rule.kept {
			broken = append(broken, rule.message)
		}
	}
	return broken
}

func kindsIn(password string) map[string]bool {
	has := map[string]bool{}
	for _, r := range password {
		switch {
		case unicode.IsUpper(r):
			has["upper"] = true
		case unicode.IsLower(r):
			has["lower"] = true
		case unicode.IsDigit(r):
			has["digit"] = true
		case unicode.IsPrint(r) && !unicode.IsLetter(r) && r != ' ':
			has["special"] = true
		}
	}
	return has
}

// knownBy reports whether the letters of a password are a word that everybody can guess.
func (o Owner) knownBy(password string) bool {
	letters := lettersOf(password)
	local, _, _ := strings.Cut(o.Email, "@")
	for _, word := range []string{product, local, o.FirstName, o.LastName, o.FirstName + o.LastName, o.LastName + o.FirstName} {
		if word := lettersOf(word); word != "" && word == letters {
			return true
		}
	}
	return false
}

// lettersOf leaves out digits, signs, spaces and case.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
