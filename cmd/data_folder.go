package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"
	"github.com/spf13/cobra"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks/schemadrift"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/phi/keyring"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/migrations"
	_ "github.com/vigilhealth/vigil/migrations" // the schema
)

// Sizes of the connection pools. A few connections with a page cache of 8 MB each read faster than many, with a fifth of the memory; there is only
// one writer.
const (
	readConnections = 8
	logConnections  = 4
)

// NewApp returns PocketBase on the data folder, without opening it.
func NewApp(dir string, settings config.Settings) (core.App, error) {
	if err := shareSettingsKey(settings); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // PocketBase would create it readable for every user of the machine
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	app := core.NewBaseApp(core.BaseAppConfig{
		DataDir: dir, EncryptionEnv: settingsKeyName, QueryTimeout: 30 * time.Second,
		DataMaxOpenConns: readConnections, DataMaxIdleConns: readConnections, AuxMaxOpenConns: logConnections, AuxMaxIdleConns: logConnections,
		DBConnect: sqlite.Connect,
	})
	app.OnBootstrap().Unbind(watcherHook, collectionHook)
	return app, nil
}

// watcherHook is the PocketBase hook that reloads settings and collections when a file in the data folder indicates a change by another process.
// Vigil checks them at startup only: otherwise a process that can write to the folder could change the rules of a running service.
const watcherHook = "__pbNotifyWatcherSystemHook__"

// collectionHook is the PocketBase hook that loads all collections a second time at startup.
const collectionHook = "__pbCollectionSystemHook__"

// folder returns the app on the data folder for a command, without opening it.
func (p *Program) folder() (core.App, config.Settings, error) {
	settings, err := p.settings()
	if err != nil {
		return nil, settings, err
	}
	settings = settings.WithPublicURL("http://" + defaultAddr)
	app, err := NewApp(p.dir, settings)
	return app, settings, err
}

// openService opens the data folder with the service's engines, while the service may be running.
func (p *Program) openService(cmd *cobra.Command) (*Service, error) {
	app, settings, err := p.folder()
	if err != nil {
		return nil, err
	}
	sealer, err := Open(app, settings)
	if err != nil {
		return nil, err
	}
	return p.NewService(app, sealer, settings, newLog(cmd.ErrOrStderr(), settings.SlogLevel()), clockwork.NewRealClock())
}

// requireDatabase fails without a database, so that a mistyped --dir does not create an empty practice.
func (p *Program) requireDatabase() error {
	if _, err := os.Stat(filepath.Join(p.dir, "data.db")); err != nil {
		return fmt.Errorf("there is no database in %s", p.dir)
	}
	return nil
}

// shareSettingsKey sets the environment variable from which PocketBase reads the key of its settings; Vigil's may come from a file.
func shareSettingsKey(settings config.Settings) error {
	if err := os.Setenv(settingsKeyName, settings.SettingsKey.Reveal()); err != nil {
		return fmt.Errorf("set the settings key: %w", err)
	}
	return nil
}

const settingsKeyName = config.Prefix + "SETTINGS_KEY"

// Open is openAs for a command that may run beside the service.
func Open(app core.App, settings config.Settings) (*phi.Sealer, error) {
	return openAs(app, settings, admitCommand)
}

// admission permits a process with a key ring to use the data folder. It calls migrate, which updates the schema, once nothing prevents it.
type admission func(app core.App, ring *phi.KeyRing, migrate func() error) error

// openAs bootstraps the app, migrates the schema and sets the keys of encrypted fields. It fails if
// the key ring lacks a key that stored values need, if this process may not seal values in this
// folder, or if the audit trail's triggers are missing.
func openAs(app core.App, settings config.Settings, admit admission) (*phi.Sealer, error) {
	if err := settings.RequireEncryption(); err != nil {
		return nil, err
	}
	if !app.IsBootstrapped() {
		if err := bootstrap(app); err != nil {
			return nil, err
		}
	}
	isNew := !app.HasTable(collections.FeeSchedule)
	var outdated error // not related to the keys
	sealer, err := unlock(app, settings, func(app core.App, ring *phi.KeyRing) error {
		return admit(app, ring, func() error { outdated = migrate(app); return outdated })
	})
	if err := cmp.Or(outdated, err); err != nil {
		return nil, err
	}
	if err := collections.CheckAuditTriggers(app); err != nil {
		return nil, err
	}
	if err := audit.EnsureState(app); err != nil || !isNew {
		return sealer, err
	}
	return sealer, billing.StoreBundledFees(app, time.Now().In(settings.PracticeLocation))
}

// OpenToServe is openAs for the service. It also writes PocketBase's settings, which a command with
// different settings must not do.
func OpenToServe(app core.App, settings config.Settings) (*phi.Sealer, error) {
	sealer, err := openAs(app, settings, admitService)
	if err != nil {
		return nil, err
	}
	return sealer, assertSettings(app, settings)
}

// migrate updates the schema.
func migrate(app core.App) error {
	if err := sqlite.SortOnDisk(app.NonconcurrentDB(), app.RunAllMigrations); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	if err := collections.SetPlannerStatistics(app); err != nil {
		return err
	}
	return collections.InstallChangeTriggers(app)
}

// unlock sets the keys of the encrypted fields and the audit trail, once the ring is admitted.
func unlock(app core.App, settings config.Settings, admit func(core.App, *phi.KeyRing) error) (*phi.Sealer, error) {
	if err := settings.RequireEncryption(); err != nil {
		return nil, err
	}
	sealer, err := newSealer(app, settings, admit)
	if err != nil {
		return nil, fmt.Errorf("VIGIL_ENCRYPTION_KEYS: %w", err)
	}
	collections.UseSealer(sealer)
	return sealer, nil
}

func newSealer(app core.App, settings config.Settings, admit func(core.App, *phi.KeyRing) error) (*phi.Sealer, error) {
	ring, err := phi.NewKeyRing(settings.EncryptionKeys...)
	if err != nil {
		return nil, err
	}
	if err := admit(app, ring); err != nil {
		return nil, err
	}
	key, err := collections.LoadIndexKey(app, ring)
	if err != nil {
		return nil, err
	}
	return phi.NewSealer(ring, key)
}

// admitService admits the service, which publishes the keys that it holds until it releases the folder.
func admitService(app core.App, ring *phi.KeyRing, migrate func() error) error {
	if err := keyring.AdmitService(app, ring, migrate); err != nil {
		return err
	}
	app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(keyring.WithdrawService(app), e.Next()) })
	return nil
}

// admitCommand admits a command until it releases the folder. It waits for a starting service to publish the keys that it holds.
func admitCommand(app core.App, ring *phi.KeyRing, migrate func() error) error {
	release, err := admitWithRetry(app, ring, migrate)
	if err == nil {
		app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(e.Next(), release()) })
	}
	return err
}

func admitWithRetry(app core.App, ring *phi.KeyRing, migrate func() error) (release func() error, err error) {
	for range 10 {
		if release, err = keyring.AdmitCommand(app, ring, migrate); !errors.Is(err, keyring.ErrServiceSilent) {
			break
		}
		time.Sleep(serviceStarts / 10)
	}
	return release, err
}

// serviceStarts is how long a command waits for a starting service to publish its keys.
const serviceStarts = 5 * time.Second

// bootstrap opens the data folder, and names the key that does not match. No backup can be restored into the folder until the app is closed.
func bootstrap(app core.App) error {
	release, err := backup.LockInUse(app.DataDir())
	if err != nil {
		return err
	}
	app.OnBootstrapClear().BindFunc(func(e *core.BootstrapEvent) error { return errors.Join(e.Next(), release()) })
	if err := checkSchema(app.DataDir()); err != nil {
		return errors.Join(err, release())
	}
	err = app.Bootstrap()
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "cipher: "): // decrypting PocketBase's settings row failed
		return fmt.Errorf("%s is not the key of this data folder: %w", settingsKeyName, err)
	case strings.Contains(err.Error(), "missing encryption key"): // PocketBase's settings row is encrypted
		return fmt.Errorf("%s is not set, and the settings in this data folder are sealed with it", settingsKeyName)
	default:
		return fmt.Errorf("open the data folder: %w", err)
	}
}

// realtimeLimitFactor is the factor by which PocketBase's rate limit of the realtime routes exceeds Vigil's, because it counts by address.
const realtimeLimitFactor = 10

// assertSettings writes PocketBase's settings at every start, because a superuser can change them in between.
func assertSettings(app core.App, settings config.Settings) error {
	s := app.Settings()
	s.Meta.AppName, s.Meta.AppURL, s.Meta.HideControls = "Vigil", settings.PublicURL, true
	s.Logs.MaxDays, s.Logs.MinLevel, s.Logs.LogIP, s.Logs.LogAuthId = 7, 4, false, false
	s.Batch.Enabled = false
	s.Backups, s.S3 = core.BackupsConfig{}, core.S3Config{} // PocketBase's backup is an unencrypted zip; there are no files
	s.TrustedProxy.Headers = settings.TrustedProxyHeaders
	s.RateLimits.Enabled = true
	s.RateLimits.Rules = []core.RateLimitRule{{Label: "*:auth", MaxRequests: 10, Duration: 60}}
	if limit := settings.RateLimits.Realtime; !limit.IsUnlimited() { // Vigil's limit counts by user; this one covers requests that never reach it
		s.RateLimits.Rules = append(s.RateLimits.Rules,
			core.RateLimitRule{Label: "/api/realtime", MaxRequests: realtimeLimitFactor * limit.Limit, Duration: int64(limit.Window.Seconds())})
	}
	s.SMTP.Enabled = settings.SMTP.Configured()
	if s.SMTP.Enabled {
		if from, err := mail.ParseAddress(settings.SMTP.From); err == nil {
			s.Meta.SenderName, s.Meta.SenderAddress = cmp.Or(from.Name, s.Meta.AppName), from.Address
		}
		s.SMTP.Host, s.SMTP.Port, s.SMTP.TLS = settings.SMTP.Host, settings.SMTP.Port, settings.SMTP.TLS
		s.SMTP.Username, s.SMTP.Password = settings.SMTP.Username, settings.SMTP.Password.Reveal()
	}
	if err := app.Save(s); err != nil {
		return fmt.Errorf("store PocketBase's settings: %w", err)
	}
	return nil
}

// localURL returns the URL of a listener on this machine.
func localURL(scheme string, addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// checkIntegrity checks for changes to the database made outside the service: it logs an audit trail with an unexpected end, and logs and restores changed
// rules and options of PocketBase's collections before requests are accepted.
func checkIntegrity(app core.App, log *slog.Logger, now time.Time) error {
	if err := audit.CheckEnd(app); err != nil { // logged only: care continues
		log.Error("audit trail", slog.Any("error", err))
	}
	found, err := schemadrift.Restore(app, now)
	for _, one := range found {
		log.Error("startup restored a rule of PocketBase that was changed in the database", slog.String("collection", one.Collection), slog.String("what", one.What))
	}
	if err != nil {
		return fmt.Errorf("restore the rules of PocketBase's collections: %w", err)
	}
	return nil
}

// checkSchema fails if a newer version has migrated the database, which this version cannot read or write safely, or if the folder is from a build
// before the baseline migration. It changes nothing and runs before anything else is opened. Source: docs/decisions/operating.md, "A newer folder".
func checkSchema(dir string) error {
	file := filepath.Join(dir, "data.db")
	if !exists(file) {
		return nil
	}
	db := sqlite.File(file, "busy_timeout(10000)", "query_only(ON)")
	applied, err := collections.AppliedMigrations(db)
	err = errors.Join(err, db.Close())
	if err != nil {
		return err
	}
	if _, err := migrations.CheckHistory(applied); err != nil {
		return err
	}
	registered := map[string]bool{}
	for _, list := range []core.MigrationsList{core.SystemMigrations, core.AppMigrations} {
		for _, one := range list.Items() {
			registered[one.File] = true
		}
	}
	unknown := slices.DeleteFunc(applied, func(name string) bool { return registered[name] || migrations.IsReplaced(name) })
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("the database in %s was last opened by a newer version: this program does not have its migration %s. Start that version, or restore a backup of this version",
		dir, strings.Join(unknown, ", "))
}
