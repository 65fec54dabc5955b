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

// superuserCommand is PocketBase's own, for accounts of the dashboard, under our hooks, which hold it to the password policy and record it. Its
// mailed codes are left out: the second factor is an authenticator app, and a reset is done here, on the machine.
func (p *Program) superuserCommand() *cobra.Command {
	app := &laterApp{}
	command := cmd.NewSuperuserCommand(app)
	command.Short, command.RunE = "Accounts of the dashboard", helpOnly
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

// laterApp is the app that PocketBase's commands want before the command line is read.
type laterApp struct {
	core.App
	service *Service
}

// withFolder opens the data folder, with keys and hooks, for as long as a command runs.
func (p *Program) withFolder(app *laterApp, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if makes := cmd.Name() == "create" || cmd.Name() == "upsert"; !makes { // the first account may come before the first start
			if err := p.needsDatabase(); err != nil {
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

// printMissingFactor says after a command that made an account what it still needs before anybody can sign in with it.
func printMissingFactor(app *laterApp, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil || len(args) == 0 || !app.service.settings.SuperuserNeedsTwoFactor() {
			return err
		}
		superuser, err := collections.FindSuperuserByEmail(app, auth.FoldEmail(args[0]))
		if err != nil || superuser.TwoFactorEnabled() { // not an account that is there
			return nil //nolint:nilerr // the command itself was done
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Before it can sign in it needs a second factor: vigil superuser reset-2fa %s\n", args[0])
		return nil
	}
}

func (p *Program) unlockSuperuserCommand(app *laterApp) *cobra.Command {
	return &cobra.Command{
		Use: "unlock EMAIL", Short: "End the lock after wrong passwords at once", Args: oneArg("an e-mail address"),
		RunE: p.withFolder(app, func(cmd *cobra.Command, args []string) error {
			if err := app.service.auth.UnlockSuperuser(app.App, args[0], audit.System(), now()); err != nil {
				return err
			}
			mistyped := ""
			if _, err := app.FindAuthRecordByEmail(core.CollectionNameSuperusers, args[0]); err != nil {
				mistyped = " No superuser has that address."
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is not locked.%s\n", args[0], mistyped)
			return nil
		}),
	}
}

func (p *Program) resetSuperuserFactorCommand(app *laterApp) *cobra.Command {
	var none bool
	command := &cobra.Command{
		Use: "reset-2fa EMAIL", Short: "Give a superuser a new second factor, and end every session and lock", Args: oneArg("an e-mail address"),
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
	command.Flags().BoolVar(&none, "remove", false, "leave the account without a second factor")
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
