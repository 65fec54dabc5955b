package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

const defaultAddr = "127.0.0.1:8090"

func (p *program) serveCommand() *cobra.Command {
	var httpAddr, httpsAddr string
	command := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := p.settings()
			if err != nil {
				return err
			}
			if err := settings.RequireEncryption(); err != nil {
				return err
			}
			log := newLog(cmd.OutOrStdout(), settings.SlogLevel())
			for _, warning := range settings.Warnings() {
				log.Warn("setting", slog.String("warning", warning))
			}
			announce := func(s *service) error {
				s.listening = func(address string) {
					log.Info("listening", slog.String("address", address), slog.String("version", version))
				}
				return nil
			}
			return p.runService(cmd.Context(), settings, log, httpAddr, httpsAddr, announce)
		},
	}
	command.Flags().StringVar(&httpAddr, "http", defaultAddr, "address to listen on")
	command.Flags().StringVar(&httpsAddr, "https", "", "address to listen on with TLS")
	return command
}

// runService builds the service, lets the caller prepare it, and serves.
func (p *program) runService(ctx context.Context, settings config.Settings, log *slog.Logger, httpAddr, httpsAddr string, prepare func(*service) error) error {
	scheme, addr := "http", httpAddr
	if httpsAddr != "" {
		scheme, addr = "https", httpsAddr
	}
	settings = settings.ServedAt(scheme + "://" + addr)
	release, err := backup.Serve(p.dir)
	if err != nil {
		return err
	}
	defer release() //nolint:errcheck // the lock ends with the process anyway
	app, err := newApp(p.dir, settings)
	if err != nil {
		return err
	}
	sealer, err := openToServe(app, settings)
	if err != nil {
		return err
	}
	s, err := newServiceOn(app, sealer, settings, log, clockwork.NewRealClock())
	if err != nil {
		return err
	}
	if err := prepare(s); err != nil {
		return errors.Join(err, app.ClearBootstrap())
	}
	return s.serve(ctx, httpAddr, httpsAddr)
}

// newLog writes JSON lines. No level prints health information: what could hold any refuses to print.
func newLog(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}

func (p *program) keysCommand() *cobra.Command {
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

func (p *program) simulateCommand() *cobra.Command {
	options := sandbox.SimulateOptions{Now: now}
	var seed int64
	command := &cobra.Command{
		Use: "simulate", Short: "Send signed readings like a device gateway", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.URL == "" {
				return usageError{fmt.Errorf("--url is required")}
			}
			settings, err := p.settings()
			if err != nil {
				return err
			}
			if options.Secret = settings.Gateway.WebhookSecret.Reveal(); options.Secret == "" {
				return fmt.Errorf("VIGIL_GATEWAY_WEBHOOK_SECRET is not set: the simulator signs with it")
			}
			options.URL = strings.TrimSuffix(options.URL, "/")
			if !strings.HasSuffix(options.URL, webhookPath) {
				options.URL += webhookPath + "/"
			}
			options.Seed, options.Out = uint64(seed), cmd.OutOrStdout() //nolint:gosec // any seed will do
			tally, err := sandbox.Simulate(cmd.Context(), options)
			fmt.Fprintln(cmd.OutOrStdout(), tally)
			if err == nil && tally.Events > 0 && tally.Delivered == 0 {
				err = fmt.Errorf("%s took nothing: is it up, with the same VIGIL_GATEWAY_WEBHOOK_SECRET?", options.URL)
			}
			return err
		},
	}
	command.Flags().StringVar(&options.URL, "url", "", "address of the service")
	command.Flags().IntVar(&options.Count, "patients", 10, "number of simulated patients")
	command.Flags().Float64Var(&options.Rate, "rate", 1, "readings per second")
	command.Flags().DurationVar(&options.For, "for", time.Minute, "how long")
	command.Flags().Int64Var(&seed, "seed", 1, "the same seed sends the same readings")
	return command
}

const webhookPath = "/api/v1/gateway/webhook"

func (p *program) emrSandboxCommand() *cobra.Command {
	var addr, serviceURL, journal string
	command := &cobra.Command{
		Use: "emr-sandbox", Short: "Run an EMR to deliver to: token endpoint, metadata, Patient, Observation, faults on demand", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := p.settings()
			if err != nil {
				return err
			}
			clientID, practiceCode := cmp.Or(settings.EMR.ClientID, demoClientID), cmp.Or(settings.EMR.PracticeCode, demoPractice)
			emr, err := sandbox.NewEMR(sandbox.EMROptions{
				BaseURL: "http://" + addr, PracticeCode: practiceCode, ClientID: clientID,
				ClientSecret: settings.EMR.ClientSecret.Reveal(), JWKSURL: serviceURL + "/.well-known/jwks.json",
				RedirectURI: serviceURL + "/api/v1/emr/auth/callback/", Patients: sandbox.MadeUpPatients(), JournalFile: journal, Now: now,
			})
			if err != nil {
				return fmt.Errorf("EMR sandbox: %w", err)
			}
			defer func() { _ = emr.Close() }() // the journal is written as it goes
			fmt.Fprintf(cmd.OutOrStdout(), "EMR sandbox on http://%s\nThe service reaches it with\n\n%s\n",
				addr, strings.Join(sandboxSettings("http://"+addr, clientID, practiceCode), "\n"))
			return serveSandbox(cmd, addr, emr)
		},
	}
	command.Flags().StringVar(&addr, "http", "127.0.0.1:8091", "address to listen on")
	command.Flags().StringVar(&serviceURL, "service", "http://"+defaultAddr, "address of the service, whose public keys sign the assertions")
	command.Flags().StringVar(&journal, "journal", "", "file that keeps what was delivered across restarts")
	return command
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
