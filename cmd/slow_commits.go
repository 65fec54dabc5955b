//go:build slowcommits

package cmd

import (
	"os"

	"github.com/vigilhealth/vigil/cmd/slowcommits"
)

// The benchmark builds the service with this tag to simulate a slower disk.
func init() { slowcommits.Delay(os.Getenv(slowcommits.Setting)) }
