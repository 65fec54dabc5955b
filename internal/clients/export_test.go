package clients

// FormOf is a request with an assertion.
func FormOf(assertion string) Form { return Form{assertion: assertion} }

// ParseKeys reads a set that an administrator gave, and returns it as it is stored.
func ParseKeys(raw []byte) ([]byte, error) {
	keys, err := parseGiven(raw)
	if err != nil {
		return nil, err
	}
	return keys.encode()
}
