package auth

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// Assert verifies an assertion.
func (mc *MachineClients) Assert(ctx context.Context, app core.App, assertion string, now time.Time) error {
	_, err := mc.checkAssertion(ctx, app, TokenRequest{assertion: assertion}, "", now)
	return err
}

// ParseKeys parses a key set from an administrator and returns it in the stored format.
func ParseKeys(raw []byte) ([]byte, error) {
	keys, err := parseConfiguredKeys(raw)
	if err != nil {
		return nil, err
	}
	return keys.encode()
}
