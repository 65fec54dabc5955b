package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/pocketbase/pocketbase/cmd"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
)

// superuserCommand is PocketBase's own command for dashboard accounts, with Vigil's hooks, which enforce the password policy and audit it. It omits
// mailed codes: the second factor is an authenticator app, reset by a command on this machine.
func (p *Program) superuserCommand() *cobra.Command {
	app := &deferredApp{}
	command := cmd.NewSuperuserCommand(app)
	command.Short, command.RunE = "Dashboard accounts", helpOnly
	for _, sub := range command.Commands() {
		if sub.Name() == "otp" {
			command.RemoveCommand(sub)
			continue
		}
		sub.RunE = p.withFolder(app, printMissingFactor(app, sub.RunE))
	}
	command.AddCommand(p.unlockSuperuserCommand(app), p.resetSuperuserFactorCommand(app))
	return command
}

// deferredApp is passed to PocketBase's commands, which require an app before the command line is parsed.
type deferredApp struct {
	core.App
	service *Service
}

// withFolder opens the data folder, with keys and hooks, while a command runs.
func (p *Program) withFolder(app *deferredApp, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if makes := cmd.Name() == "create" || cmd.Name() == "upsert"; !makes { // the first account may be created before the first start
			if err := p.requireDatabase(); err != nil {
				return err
			}
		}
		s, err := p.openService(cmd)
		if err != nil {
			return err
		}
		defer func() { _ = s.app.ClearBootstrap() }() // everything is stored
		app.App, app.service = s.app, s
		return plain(run(cmd, args))
	}
}

// printMissingFactor prints what a new account still needs before its user can sign in.
func printMissingFactor(app *deferredApp, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || len(args) == 0 || !app.service.settings.SuperuserNeedsTwoFactor() {
			return err
		}
		superuser, err := collections.FindSuperuserByEmail(app, auth.FoldEmail(args[0]))
		if err != nil || superuser.TwoFactorEnabled() { // the account does not exist
			return nil //nolint:nilerr // the command itself succeeded
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Before it can sign in it needs a second factor: vigil superuser reset-2fa %s\n", args[0])
		return nil
	}
}

func (p *Program) unlockSuperuserCommand(app *deferredApp) *cobra.Command {
	return &cobra.Command{
		Use: "unlock EMAIL", Short: "Remove the lock after wrong passwords", Args: oneArg("an e-mail address"),
		RunE: p.withFolder(app, func(cmd *cobra.Command, args []string) error {
			if err := app.service.auth.UnlockSuperuser(app.App, args[0], audit.System(), now()); err != nil {
				return err
			}
			if _, err := app.FindAuthRecordByEmail(core.CollectionNameSuperusers, auth.FoldEmail(args[0])); collections.IsNotFound(err) {
				return fmt.Errorf("there is no superuser %s, so nothing was unlocked", args[0])
			} else if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is not locked.\n", args[0])
			return nil
		}),
	}
}

func (p *Program) resetSuperuserFactorCommand(app *deferredApp) *cobra.Command {
	var none bool
	command := &cobra.Command{
		Use: "reset-2fa EMAIL", Short: "Set a new second factor of a superuser, and end every session and lock", Args: oneArg("an e-mail address"),
		RunE: p.withFolder(app, func(cmd *cobra.Command, args []string) error {
			setup, err := app.service.auth.ResetSuperuserFactor(app.App, args[0], none, audit.System(), now())
			if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Kind == fault.NotFound {
				return fmt.Errorf("there is no superuser %s", args[0])
			}
			if err != nil {
				return err
			}
			return printFactor(cmd.OutOrStdout(), args[0], setup)
		}),
	}
	command.Flags().BoolVar(&none, "remove", false, "remove the second factor without a replacement")
	return command
}

func printFactor(out io.Writer, address string, setup auth.Setup) error {
	if setup.Secret == "" {
		_, err := fmt.Fprintf(out, "%s has no second factor now.\n", address)
		return err
	}
	_, err := fmt.Fprintf(out, "%s now signs in with a code of an authenticator app. Add the account there by this address or secret, shown this once:\n%s\n%s\n",
		address, setup.ProvisioningURI, setup.Secret)
	return err
}
