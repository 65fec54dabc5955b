package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Assert finds out which client has signed an assertion, if any.
func (e *MachineClients) Assert(ctx context.Context, app core.App, assertion string, now time.Time) error {
	_, err := e.checkAssertion(ctx, app, Form{assertion: assertion}, "", now)
	return err
}

// ParseKeys reads a set that an administrator gave, and returns it as it is stored.
func ParseKeys(raw []byte) ([]byte, error) {
	keys, err := parseGiven(raw)
	if err != nil {
		return nil, err
	}
	return keys.encode()
}
