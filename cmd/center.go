package cmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/cmd/fleet"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/center"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
)

func (p *Program) centerCommand() *cobra.Command {
	var list, httpAddr string
	command := &cobra.Command{
		Use: "center --practices LIST", Short: "Serve one list of the patients of several practices", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := p.settings()
			if err != nil {
				return err
			}
			practices, err := readPractices(list)
			if err != nil {
				return err
			}
			return serveCenter(cmd.Context(), settings, practices, newLog(cmd.OutOrStdout(), settings.SlogLevel()), httpAddr)
		},
	}
	command.Flags().StringVar(&list, "practices", "", "list of practices (YAML), as for vigil fleet render")
	command.Flags().StringVar(&httpAddr, "http", "127.0.0.1:8092", "address to listen on, behind a proxy with TLS")
	return command
}

// readPractices reads the practices of a fleet's list.
func readPractices(name string) ([]center.Practice, error) {
	if name == "" {
		return nil, usageError{errors.New("--practices is required: the list of practices")}
	}
	text, err := os.ReadFile(name) //nolint:gosec // a path from the operator
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	list, err := fleet.Read(text)
	if err != nil {
		return nil, err
	}
	practices := make([]center.Practice, len(list.Practices))
	for i, one := range list.Practices {
		practices[i] = center.Practice{Name: one.Name, URL: "https://" + one.Host}
	}
	return practices, nil
}

// serveCenter serves until a signal.
func serveCenter(ctx context.Context, settings config.Settings, practices []center.Practice, log *slog.Logger, address string) error {
	o := settings.OIDC
	if !o.Configured() || settings.PublicURL == "" {
		return errors.New("VIGIL_OIDC_ISSUER and VIGIL_PUBLIC_URL are required: the identity provider, and the center's own address")
	}
	signOn := auth.NewOIDCProvider(auth.OIDCOptions{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: phi.Text(o.ClientSecret.Reveal()), RedirectURL: settings.PublicURL + center.CallbackPath,
		RoleClaim: o.RoleClaim, TrustMFA: o.TrustMFA, MaxAge: o.MaxAge, Key: []byte(rand.Text()), // a restart ends unfinished sign-ins
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}}
	server := &http.Server{
		Addr: address, Handler: center.New(practices, client).Handler(signOn, log, now),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer ended()
	log.Info("center listening", slog.String("address", address), slog.Int("practices", len(practices)))
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the center on %s: %w", address, err)
	}
	return nil
}
