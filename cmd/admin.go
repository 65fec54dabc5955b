package cmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
)

func (p *Program) adminCommand() *cobra.Command {
	admin := &cobra.Command{Use: "admin", Short: "Administrators of the practice", RunE: helpOnly}
	account := auth.NewAccount{Role: authz.Admin}
	var passwordStdin bool
	create := &cobra.Command{
		Use: "create", Short: "Create an administrator", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if account.Email == "" {
				return usageError{errors.New("--email is required")}
			}
			if passwordStdin {
				line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return fmt.Errorf("read the password: %w", err)
				}
				account.Password = strings.TrimRight(line, "\r\n")
			}
			return p.createAdmin(cmd, account, !passwordStdin)
		},
	}
	create.Flags().StringVar(&account.Email, "email", "", "e-mail address")
	create.Flags().StringVar(&account.FirstName, "first-name", "", "given name")
	create.Flags().StringVar(&account.LastName, "last-name", "", "family name")
	create.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input instead of printing a link to set it")
	admin.AddCommand(create)
	return admin
}

func (p *Program) createAdmin(cmd *cobra.Command, account auth.NewAccount, byLink bool) error {
	s, err := p.openService(cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.app.ClearBootstrap() }() // everything is stored
	return s.createAdmin(cmd.OutOrStdout(), account, byLink)
}

func (s *Service) createAdmin(out io.Writer, account auth.NewAccount, byLink bool) error {
	var link string
	create := func() error {
		_, err := auth.CreateAccount(s.app, account, audit.System(), now())
		return err
	}
	if byLink {
		create = func() (err error) {
			link, err = auth.Invite(s.app, account, s.settings.FrontendResetURL, audit.System(), now())
			return err
		}
	}
	if err := create(); err != nil {
		return plain(err)
	}
	fmt.Fprintf(out, "Administrator %s created.\n", account.Email)
	if link != "" {
		fmt.Fprintf(out, "Set the password within 24 hours: %s\n", link)
	}
	return nil
}
