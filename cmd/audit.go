package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
)

func (p *Program) auditCommand() *cobra.Command {
	command := &cobra.Command{Use: "audit", Short: "The audit trail", RunE: helpOnly}
	command.AddCommand(&cobra.Command{
		Use: "verify", Short: "Verify the hash chain: print the head hash, or fail with the first invalid entry", Args: noArgs,
		RunE: p.verifyAudit,
	})
	return command
}

func (p *Program) verifyAudit(cmd *cobra.Command, _ []string) error {
	if err := p.requireDatabase(); err != nil {
		return err
	}
	app, settings, err := p.folder()
	if err != nil {
		return err
	}
	if err := bootstrap(app); err != nil {
		return err
	}
	defer func() { _ = app.ClearBootstrap() }()                     // nothing was written
	if _, err := unlock(app, settings, keyring.Check); err != nil { // the hashes are keyed
		return err
	}
	show := progress(cmd.ErrOrStderr(), "entries checked")
	result, err := audit.VerifyAgainstHead(app, settings.Audit.HeadPath, func(checked, total int64) { show(int(checked), int(total)) })
	if err != nil {
		return err
	}
	if !result.Valid {
		return fmt.Errorf("the audit trail was changed: entry %d is the first that does not fit (%s)", *result.FirstInvalidID, result.Problem)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d entries, head %s\n", result.Checked, result.HeadHash)
	return nil
}
