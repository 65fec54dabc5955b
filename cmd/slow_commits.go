//go:build slowcommits

package cmd

import (
	"os"

	"github.com/vigilhealth/vigil/tools/bench/slow"
)

// The benchmark builds the service with this tag to see it on a slower disk.
func init() { slow.Commits(os.Getenv(slow.Setting)) }
