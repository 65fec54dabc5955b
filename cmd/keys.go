package cmd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
)

func (p *Program) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Secrets of the service", RunE: helpOnly}
	keys.AddCommand(&cobra.Command{
		Use: "generate", Short: "Print a block of fresh secrets as NAME=value lines", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			block, err := config.Generate(rand.Reader, now())
			if err != nil {
				return fmt.Errorf("generate keys: %w", err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), block)
			return err
		},
	}, p.rotateCommand())
	return keys
}

func (p *Program) rotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Re-encrypt everything under the first key, while the service runs", Args: noArgs,
		Long: "Put the new key first in VIGIL_ENCRYPTION_KEYS, before the old one, and restart the service; then run this.\n" +
			"It can be interrupted at any time, and continues there when run again.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.requireDatabase(); err != nil {
				return err
			}
			app, settings, err := p.folder()
			if err != nil {
				return err
			}
			defer func() { _ = app.ClearBootstrap() }() // every batch is stored
			letGo := func() error { return nil }
			sealer, err := openAs(app, settings, func(app core.App, ring *phi.KeyRing, migrate func() error) (err error) {
				letGo, err = admitWithRetry(app, ring, migrate)
				return err
			})
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			report, err := keyring.Run(ctx, app, sealer.KeyRing, audit.System(), now(), progress(cmd.OutOrStdout(), "re-encrypting rows"), letGo)
			return errors.Join(printRotation(cmd.OutOrStdout(), report), err)
		},
	}
}

// printRotation reports the result and the keys that are still needed; it returns an error if values remain under an older key.
func printRotation(out io.Writer, report keyring.Report) error {
	fmt.Fprintf(out, "%d values re-encrypted under key %s.\n", report.Resealed, report.KeyID)
	if report.Unreadable > 0 {
		fmt.Fprintf(out, "%d values open with none of the keys and were left as they are:\n  %s\n", report.Unreadable, strings.Join(report.UnreadableValues, "\n  "))
	}
	for _, key := range slices.Sorted(maps.Keys(report.Unretired)) {
		fmt.Fprintf(out, "Key %s has to stay in the ring: %s.\n", key, report.Unretired[key])
	}
	for _, key := range report.AuditKeys() {
		fmt.Fprintf(out, "Key %s is still needed for %d rows of the audit log, which cannot be changed.\n", key, report.AuditRows[key])
	}
	if report.Remaining > 0 {
		return fmt.Errorf("%d values were sealed under an older key during the run: restart the service with key %s first, then run this again",
			report.Remaining, report.KeyID)
	}
	return nil
}
