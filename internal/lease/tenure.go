package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tenureFile is in the data folder, and in no backup or replica.
const tenureFile = "lease.json"

// keptTenure binds a tenure to one node and one start of the machine, so that a copy of the folder on another machine waits.
type keptTenure struct {
	Tenure
	Node string `json:"node"`
	Boot string `json:"boot"`
}

// LoadTenure returns the tenure that a former process of this node kept in the data folder since the machine's last start; the
// zero Tenure without one. The caller holds the folder's lock.
func LoadTenure(dir, node string) (Tenure, error) {
	content, err := os.ReadFile(filepath.Join(dir, tenureFile)) //nolint:gosec // the data folder
	if errors.Is(err, fs.ErrNotExist) {
		return Tenure{}, nil
	}
	if err != nil {
		return Tenure{}, fmt.Errorf("read the tenure: %w", err)
	}
	var kept keptTenure
	if json.Unmarshal(content, &kept) == nil && kept.Node == node && kept.Boot != "" && kept.Boot == bootID() {
		return kept.Tenure, nil
	}
	return Tenure{}, nil
}

// KeepTenure stores the tenure in the data folder, for a restart in time.
func KeepTenure(dir, node string, t Tenure) error {
	content, err := json.Marshal(keptTenure{t, node, bootID()})
	if err != nil {
		return fmt.Errorf("encode the tenure: %w", err)
	}
	path := filepath.Join(dir, tenureFile)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write the tenure: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("replace the tenure: %w", err)
	}
	return nil
}

// bootID identifies the machine's last start; "" where the system has none, and then every restart waits.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
