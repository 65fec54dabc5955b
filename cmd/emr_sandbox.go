package cmd

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

func (p *Program) emrSandboxCommand() *cobra.Command {
	var addr, serviceURL, journal, profile string
	command := &cobra.Command{
		Use: "emr-sandbox", Short: "Run an EMR sandbox: token endpoint, metadata, Patient, Observation, faults on demand", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := p.settings()
			if err != nil {
				return err
			}
			clientID, practiceCode := cmp.Or(settings.EMR.ClientID, demoClientID), cmp.Or(settings.EMR.PracticeCode, demoPractice)
			emr, err := sandbox.NewEMR(sandbox.EMROptions{
				BaseURL: "http://" + addr, PracticeCode: practiceCode, ClientID: clientID,
				ClientSecret: settings.EMR.ClientSecret.Reveal(), JWKSURL: serviceURL + "/.well-known/jwks.json",
				RedirectURI: serviceURL + "/api/v1/emr/auth/callback/", Patients: sandbox.DemoEMRPatients(), JournalFile: journal, Profile: profile, Now: now,
			})
			if err != nil {
				return fmt.Errorf("EMR sandbox: %w", err)
			}
			emr.AddDemoCharts()
			defer func() { _ = emr.Close() }() // the journal is written continuously
			fmt.Fprintf(cmd.OutOrStdout(), "EMR sandbox on http://%s\nThe service reaches it with\n\n%s\n",
				addr, strings.Join(sandboxSettings("http://"+addr, clientID, practiceCode), "\n"))
			return serveSandbox(cmd, addr, emr)
		},
	}
	command.Flags().StringVar(&addr, "http", "127.0.0.1:8091", "address to listen on")
	command.Flags().StringVar(&serviceURL, "service", "http://"+defaultAddr, "address of the service; its public keys verify the assertions")
	command.Flags().StringVar(&journal, "journal", "", "file that stores deliveries across restarts")
	profileFlag(command, &profile, "profile")
	return command
}

// profileFlag adds a flag with the name of what the EMR offers.
func profileFlag(command *cobra.Command, profile *string, name string) {
	command.Flags().StringVar(profile, name, "everything", "what the EMR offers: "+strings.Join(sandbox.EMRProfiles(), ", "))
}

func serveSandbox(cmd *cobra.Command, addr string, handler http.Handler) error {
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-cmd.Context().Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != nil && err != http.ErrServerClosed {
		return fmt.Errorf("EMR sandbox: %w", err)
	}
	return nil
}

// sandboxSettings returns the settings, as NAME=value, that connect a service to the EMR sandbox at emrURL.
func sandboxSettings(emrURL, clientID, practiceCode string) []string {
	return []string{
		"VIGIL_EMR_FHIR_BASE_URL=" + emrURL + "/fhir/{practice_code}", "VIGIL_EMR_TOKEN_URL=" + emrURL + "/oauth/token",
		"VIGIL_EMR_AUTHORIZE_URL=" + emrURL + "/oauth/authorize", "VIGIL_EMR_CLIENT_ID=" + clientID, "VIGIL_EMR_PRACTICE_CODE=" + practiceCode,
	}
}
