package cmd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The demo's identifiers, files and reading rate.
const (
	demoSuperuser  = "dashboard@vigil.example"
	demoClientID   = "vigil-demo"
	demoPractice   = "demo"
	demoRate       = 0.2 // readings per second
	demoLogLevel   = slog.LevelError
	demoEnvName    = "demo.env"
	demoEMRJournal = "emr-sandbox.jsonl"
)

func (p *Program) demoCommand() *cobra.Command {
	d := &demo{Program: p}
	command := &cobra.Command{
		Use: "demo", Short: "Run a self-contained demo: the service with simulated patients, gateway, EMR and mailbox", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	command.Flags().StringVar(&d.httpAddr, "http", defaultAddr, "address to listen on")
	command.Flags().IntVar(&d.patients, "patients", 40, "number of simulated patients")
	command.Flags().BoolVar(&d.quiet, "quiet", false, "print addresses and accounts only")
	profileFlag(command, &d.emrProfile, "emr-profile")
	return command
}

// demo is a self-contained practice with simulated neighbors.
type demo struct {
	*Program
	httpAddr string
	patients int
	quiet    bool
	out      io.Writer
	// emrProfile is what the EMR offers, one of [sandbox.EMRProfiles].
	emrProfile string

	emr    *sandbox.EMR
	mail   *sandbox.MailCatcher
	phones *sandbox.Phones

	lock    sync.Mutex
	waiting map[string]ingest.Outcome // stored while the demo runs, and not yet delivered
	backlog int                       // undelivered readings of the past month
}

func (d *demo) run(ctx context.Context, errOut io.Writer) error {
	if config.Environment(valueOf(d.Environ, "VIGIL_ENVIRONMENT")) == config.Production {
		return errors.New("the demo generates people and keys: it does not run with VIGIL_ENVIRONMENT=production")
	}
	if d.patients < 0 {
		return usageError{errors.New("--patients cannot be negative")}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the process
	if err != nil {
		return fmt.Errorf("listen for the EMR sandbox: %w", err)
	}
	emrURL := "http://" + listener.Addr().String()
	if d.mail, err = sandbox.NewMailCatcher(now, nil); err != nil {
		return fmt.Errorf("mail catcher: %w", err)
	}
	settings, err := d.settings(emrURL)
	if err != nil {
		return err
	}
	if settings.Messaging.Provider == "http" {
		if d.phones, err = sandbox.NewPhones(settings.Messaging.Secret.Reveal(), settings.Messaging.From, now); err != nil {
			return err
		}
	}
	if err := d.openEMR(settings, listener, emrURL); err != nil {
		return err
	}
	d.waiting = map[string]ingest.Outcome{}
	return d.runService(ctx, settings, newLog(errOut, demoLogLevel), d.httpAddr, "", func(s *Service) error { return d.prepare(ctx, s, emrURL) })
}

// settings returns the environment's settings, completed with generated keys and the addresses of the sandboxes.
func (d *demo) settings(emrURL string) (config.Settings, error) {
	keys, err := d.keys()
	if err != nil {
		return config.Settings{}, err
	}
	secret := make([]byte, 32) // of this run: only the phones in this process share it
	_, _ = rand.Read(secret)   // never fails
	defaults := append(append(keys, sandboxSettings(emrURL, demoClientID, demoPractice)...),
		"VIGIL_EMR_ENVIRONMENT=staging", "VIGIL_EMR_RATE_LIMIT_PER_SECOND=0", "VIGIL_RATE_LIMIT_WEBHOOK=0",
		"VIGIL_PRACTICE_NAME=Maple Street Clinic", "VIGIL_PRACTICE_NPI=1234567893", "VIGIL_PRACTICE_TAX_ID=123456789", "VIGIL_PRACTICE_TAXONOMY=207Q00000X",
		"VIGIL_PRACTICE_ADDRESS=1 Maple Street", "VIGIL_PRACTICE_CITY=Albany", "VIGIL_PRACTICE_STATE=NY", "VIGIL_PRACTICE_ZIP=122071234", "VIGIL_PRACTICE_PHONE=5185550100",
		"VIGIL_CLAIMS_SUBMITTER_ID=DEMO", "VIGIL_CLAIMS_SUBMITTER_NAME=Maple Street Clinic", "VIGIL_CLAIMS_SUBMITTER_CONTACT=Billing", "VIGIL_CLAIMS_SUBMITTER_PHONE=5185550100",
		"VIGIL_CLAIMS_RECEIVER_ID=DEMOHOUSE", "VIGIL_CLAIMS_RECEIVER_NAME=Demo Clearing House",
		"VIGIL_SMTP_HOST=127.0.0.1", fmt.Sprintf("VIGIL_SMTP_PORT=%d", d.mail.Port()), "VIGIL_SMTP_FROM=Vigil <vigil@vigil.example>",
		"VIGIL_MESSAGING=http", "VIGIL_MESSAGING_URL="+emrURL+"/phones/send", "VIGIL_MESSAGING_SECRET=whsec_"+base64.StdEncoding.EncodeToString(secret),
		"VIGIL_MESSAGING_FROM=+15185550100", "VIGIL_MESSAGING_HOURS=00:00-24:00", "VIGIL_OUTBOUND_DEV_ALLOWED_HOSTS=127.0.0.1",
	)
	environ := append([]string(nil), d.Environ...)
	for _, pair := range defaults {
		name, _, _ := strings.Cut(pair, "=")
		if valueOf(d.Environ, name) == "" && valueOf(d.Environ, name+"_FILE") == "" {
			environ = append(environ, pair)
		}
	}
	d.Environ = environ // also for subprocesses of the service
	return config.Load(environ)
}

// keys returns the keys, which are generated once and stored in the data folder.
func (d *demo) keys() ([]string, error) {
	path := filepath.Join(d.dir, demoEnvName)
	written, err := os.ReadFile(path) //nolint:gosec // a path from the operator
	if errors.Is(err, fs.ErrNotExist) {
		block, err := config.Generate(rand.Reader, now())
		if err != nil {
			return nil, fmt.Errorf("generate keys: %w", err)
		}
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
			return nil, fmt.Errorf("store the keys: %w", err)
		}
		written = []byte(block)
	} else if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	var pairs []string
	for scanner := bufio.NewScanner(bytes.NewReader(written)); scanner.Scan(); {
		if line := strings.TrimSpace(scanner.Text()); line != "" && !strings.HasPrefix(line, "#") {
			pairs = append(pairs, line)
		}
	}
	return pairs, nil
}

func valueOf(environ []string, name string) string {
	for _, pair := range environ {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value
		}
	}
	return ""
}

func (d *demo) openEMR(settings config.Settings, listener net.Listener, emrURL string) (err error) {
	service := settings.WithPublicURL("http://" + d.httpAddr).PublicURL
	d.emr, err = sandbox.NewEMR(sandbox.EMROptions{
		BaseURL: emrURL, PracticeCode: settings.EMR.PracticeCode, ClientID: settings.EMR.ClientID,
		ClientSecret: settings.EMR.ClientSecret.Reveal(), JWKSURL: service + "/.well-known/jwks.json", RedirectURI: service + "/api/v1/emr/auth/callback/",
		Patients: sandbox.DemoEMRPatients(), JournalFile: filepath.Join(d.dir, demoEMRJournal), Profile: d.emrProfile, Now: now,
	})
	if err != nil {
		return fmt.Errorf("EMR sandbox: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", d.emr)
	mux.Handle("/mails/", d.mail)
	if d.phones != nil {
		mux.Handle("/phones/", d.phones)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with the process
	return nil
}

// prepare fills an empty database, and starts the gateway simulator once the service listens.
func (d *demo) prepare(ctx context.Context, s *Service, emrURL string) error {
	enrolled, err := d.populate(ctx, s)
	if err != nil {
		return err
	}
	for n := 1; n <= enrolled; n++ {
		d.emr.AddPatient(sandbox.NewDemoPatient(n).EMRPatient())
	}
	d.emr.AddDemoCharts()
	if d.backlog, _, _, err = emr.Backlog(s.app); err != nil {
		return err
	}
	s.onStored, s.onFinished = d.noteStored, d.noteFinished
	s.Listening = func(address string) {
		if d.phones != nil {
			d.phones.ConnectTo(address)
		}
		d.introduce(address, emrURL, enrolled)
		go d.simulate(ctx, s, address, enrolled)
	}
	return nil
}

// populate creates users, patients, a month of readings and its billing in an empty database, and returns the number of patients.
func (d *demo) populate(ctx context.Context, s *Service) (enrolled int, err error) {
	enrolled, users, err := collections.CountPeople(s.app, "demo-")
	if err != nil || enrolled > 0 || users > 0 {
		return enrolled, err
	}
	auth.PermitPassword(s.app, sandbox.Password)
	if err := d.superuser(s.app); err != nil {
		return 0, err
	}
	bar := progress(d.out, "a month of readings")
	at := now()
	if err := sandbox.Populate(s.app, s.readings, d.patients, s.settings.PracticeLocation, at, bar); err != nil {
		return 0, err
	}
	return d.patients, sandbox.BillMonth(ctx, s.app, s.billing, s.settings.PracticeLocation, at)
}

func (d *demo) superuser(app core.App) error {
	superuser, err := collections.NewRecord(app, core.CollectionNameSuperusers)
	if err != nil {
		return err
	}
	superuser.SetEmail(demoSuperuser)
	superuser.SetPassword(sandbox.Password)
	if err := app.Save(superuser); err != nil {
		return fmt.Errorf("create the dashboard account: %w", err)
	}
	return nil
}

func (d *demo) introduce(address, emrURL string, enrolled int) {
	fmt.Fprintf(d.out, "\nVigil %s: %d simulated patients\n\n", d.Version, enrolled)
	for _, line := range [][2]string{
		{"service", address},
		{"dashboard", address + "/_/"},
		{"contract", address + "/api/v1/schema/"},
		{"EMR sandbox", emrURL + "/sandbox/observations"},
		{"to import", fmt.Sprintf("%s/api/v1/emr/patients/ (%d people at the EMR are not patients yet)", address, len(sandbox.DemoEMRPatients()))},
		{"mails", emrURL + "/mails/"},
		{"phones", emrURL + "/phones/"},
	} {
		fmt.Fprintf(d.out, "  %-12s %s\n", line[0], line[1])
	}
	fmt.Fprintf(d.out, "\n  %-18s %-26s %s\n", "dashboard account", demoSuperuser, sandbox.Password)
	for _, colleague := range sandbox.DemoUsers {
		fmt.Fprintf(d.out, "  %-18s %-26s %s\n", colleague.Role, colleague.Email, sandbox.Password)
	}
	fmt.Fprintln(d.out)
}

// simulate sends readings as a gateway until the process ends.
func (d *demo) simulate(ctx context.Context, s *Service, address string, enrolled int) {
	if enrolled == 0 {
		return
	}
	_, err := sandbox.Simulate(ctx, sandbox.SimulateOptions{
		URL: address + webhookPath + "/", Secret: s.settings.Gateway.WebhookSecret.Reveal(),
		Patients: sandbox.SimulatedHouseholds(enrolled), Rate: demoRate, Seed: sandbox.Seed, Now: now,
	})
	if err != nil && ctx.Err() == nil {
		s.log.Error("gateway simulator stopped", slog.Any("error", err))
	}
}

func (d *demo) noteStored(outcomes []ingest.Outcome) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, outcome := range outcomes {
		d.waiting[outcome.Observation.ID] = outcome
	}
}

// noteFinished prints one line without PHI for each finished delivery: reading kind, alert, EMR id.
func (d *demo) noteFinished(result emr.Result) {
	d.lock.Lock()
	defer d.lock.Unlock()
	outcome, live := d.waiting[result.ObservationID]
	delete(d.waiting, result.ObservationID)
	if !live {
		if d.backlog--; d.backlog == 0 && !d.quiet {
			fmt.Fprintln(d.out, "the past month has been delivered to the EMR")
		}
		return
	}
	if d.quiet {
		return
	}
	alert := "no alert"
	if len(outcome.Alerts) > 0 {
		alert = fmt.Sprintf("%s alert %d", outcome.Alerts[0].Level, collections.Number(outcome.Alerts[0].ID))
	}
	end := "EMR " + result.EMRID
	if result.Failed() {
		end = "EMR: " + result.ErrorMessage
	}
	fmt.Fprintf(d.out, "%s  %-15s → %-20s → %s\n", now().Format(time.TimeOnly), outcome.Observation.Reading.Kind, alert, end)
}
