package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
)

const defaultAddr = "127.0.0.1:8090"

func (p *Program) serveCommand() *cobra.Command {
	var httpAddr, httpsAddr string
	command := &cobra.Command{
		Use: "serve", Short: "Run the service", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			setGCPercent(p.Environ)
			settings, err := p.settings()
			if err != nil {
				return err
			}
			if err := settings.RequireEncryption(); err != nil {
				return err
			}
			if httpsAddr != "" && !settings.TLS.Configured() {
				return errNoCertificate
			}
			var file *logFile
			log := newLog(cmd.OutOrStdout(), settings.SlogLevel())
			if settings.LogFile != "" {
				if file, err = openLogFile(settings.LogFile); err != nil {
					return err
				}
				log = newLog(file, settings.SlogLevel())
			}
			for _, warning := range settings.Warnings() {
				log.Warn("setting", slog.String("warning", warning))
			}
			announce := func(s *Service) error {
				s.logFile = file
				s.Listening = func(address string) { log.Info("listening", s.startupAttributes(address)...) }
				return nil
			}
			return p.runService(cmd.Context(), settings, log, httpAddr, httpsAddr, announce)
		},
	}
	command.Flags().StringVar(&httpAddr, "http", defaultAddr, "address to listen on")
	command.Flags().StringVar(&httpsAddr, "https", "", "address to listen on with TLS")
	return command
}

// gcPercent is the heap growth, in percent, that starts a garbage collection. The service's heap is a few dozen megabytes, so Go's default of 100 would
// collect many times a second during ingestion and use a twelfth of the CPU time.
const gcPercent = 300

// setGCPercent sets the garbage collection target, unless the operator has set GOGC.
func setGCPercent(environ []string) {
	for _, line := range environ {
		if strings.HasPrefix(line, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(gcPercent)
}

// runService builds the service, calls prepare on it, and serves.
func (p *Program) runService(ctx context.Context, settings config.Settings, log *slog.Logger, httpAddr, httpsAddr string, prepare func(*Service) error) error {
	scheme, addr := "http", httpAddr
	if httpsAddr != "" {
		scheme, addr = "https", httpsAddr
	}
	if _, err := net.ResolveTCPAddr("tcp", addr); err != nil { // before the folder is created
		return usageError{fmt.Errorf("--%s must be an address to listen on such as %s: %w", scheme, defaultAddr, err)}
	}
	settings = settings.WithPublicURL(scheme + "://" + addr)
	signals, stop := hangupSignals()
	defer stop()
	release, err := backup.LockServe(p.dir)
	if err != nil {
		return err
	}
	defer release() //nolint:errcheck // the lock ends with the process in any case
	if err := makeFolderPrivate(p.dir); err != nil {
		return err
	}
	held, err := p.takeLease(ctx, settings, log, addr)
	if err != nil {
		return err
	}
	if held != nil {
		defer held.close()
	}
	app, err := NewApp(p.dir, settings)
	if err != nil {
		return err
	}
	sealer, err := OpenToServe(app, settings)
	if err != nil {
		return err
	}
	if held != nil {
		if err := held.begin(ctx, app, now()); err != nil {
			return errors.Join(err, app.ClearBootstrap())
		}
	}
	s, err := p.NewService(app, sealer, settings, log, clockwork.NewRealClock())
	if err != nil {
		return err
	}
	s.hangups, s.lease = signals, held
	if err := prepare(s); err != nil {
		return errors.Join(err, app.ClearBootstrap())
	}
	return s.Serve(ctx, httpAddr, httpsAddr)
}
