package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/config"
)

// askPatience is how long check waits for one neighbour.
const askPatience = 20 * time.Second

func (c *checkup) checkSMTP(ctx context.Context) {
	const subject = "SMTP"
	m := c.settings.SMTP
	server := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	switch {
	case !m.Configured():
		c.ok(subject, "not set up: no mail is sent")
	case !c.deep:
		c.ok(subject, "%s; not asked without --deep", server)
	default:
		if err := askMailServer(ctx, m, server); err != nil {
			c.fail(subject, "%s %v", server, err)
			return
		}
		c.ok(subject, "%s takes mail", server)
	}
}

// askMailServer goes as far as sending a mail would, but for the mail. Errors hold the server's numbers, never its words.
func askMailServer(ctx context.Context, m config.SMTP, server string) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return errors.New("cannot be reached")
	}
	defer func() { _ = connection.Close() }() // all was said
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline) // a connection that takes none is closed with the context
	}
	trust := &tls.Config{ServerName: m.Host, MinVersion: tls.VersionTLS12}
	if m.TLS {
		secured := tls.Client(connection, trust)
		if err := secured.HandshakeContext(ctx); err != nil {
			return errors.New("does not speak TLS that can be trusted")
		}
		connection = secured
	}
	client, err := smtp.NewClient(connection, m.Host)
	if err != nil {
		return answered("does not greet", err)
	}
	if offered, _ := client.Extension("STARTTLS"); offered && !m.TLS {
		if err := client.StartTLS(trust); err != nil {
			return answered("does not speak TLS that can be trusted", err)
		}
	}
	if m.Username != "" || m.Password != "" {
		if err := client.Auth(smtp.PlainAuth("", m.Username, m.Password.Reveal(), m.Host)); err != nil {
			return answered("does not let VIGIL_SMTP_USERNAME in", err)
		}
	}
	_ = client.Quit() // it has said what it had to
	return nil
}

func answered(what string, err error) error {
	if refused, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("%s: it answered %d", what, refused.Code)
	}
	return errors.New(what)
}

func (c *checkup) checkEMR(ctx context.Context) {
	const subject = audit.ResourceEMR
	interactive := c.settings.EMR.ApplicationType == "interactive"
	client, err := newEMRClient(nil, c.settings, now)
	switch {
	case err != nil:
		c.fail(subject, "%v", err)
		return
	case !client.Configured():
		c.ok(subject, "not set up: nothing is delivered")
		return
	case !c.deep:
		c.ok(subject, "%s; not asked without --deep", client.BaseURL())
		return
	case interactive: // a person's tokens change when they are used, and belong to the service
		c.ok(subject, "%s; a person signs in for it: GET /api/v1/emr/auth/status/ tells", client.BaseURL())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if _, err := client.SignIn(ctx); err != nil {
		c.fail(subject, "%s gives no token: %v", client.BaseURL(), err)
		return
	}
	capability, err := client.Metadata(ctx)
	switch {
	case err != nil:
		c.fail(subject, "%s gives a token and does not say what it can do: %v", client.BaseURL(), err)
	case !capability.Supports(audit.ResourceObservation, "create"):
		c.warn(subject, "%s gives a token, and does not say that it takes observations", client.BaseURL())
	default:
		c.ok(subject, "%s gives a token and takes observations", client.BaseURL())
	}
}

// checkSignOn asks the identity provider what it is, when there is one. It is otherwise found away by the first who wants to sign in.
func (c *checkup) checkSignOn(ctx context.Context) {
	const subject = "OIDC"
	o := c.settings.OIDC
	switch {
	case !o.Configured():
		return
	case !c.deep:
		c.ok(subject, "%s; not asked without --deep", o.Issuer)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if err := auth.NewOIDCProvider(auth.OIDCOptions{Issuer: o.Issuer}).Introduce(ctx, c.now); err != nil {
		c.fail(subject, "%s %v", o.Issuer, err)
		return
	}
	c.ok(subject, "%s says how people sign in", o.Issuer)
}

func (c *checkup) checkBucket(ctx context.Context) {
	const subject = "bucket"
	b := c.settings.Backup
	switch {
	case b.S3Bucket == "":
		c.ok(subject, "not set up: backups are kept in %s", backupFolder(c.program.dir, c.settings))
		return
	case !c.deep:
		c.ok(subject, "%s; not asked without --deep", b.S3Bucket)
		return
	case c.settings.RequireEncryption() != nil:
		return // keys has said it
	}
	opened, err := openBackups(c.program.dir, c.settings)
	if err != nil {
		c.fail(subject, "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if err := errors.Join(opened.store.Probe(ctx), opened.store.Close()); err != nil {
		c.fail(subject, "%v", err)
		return
	}
	c.ok(subject, "%s takes backups", b.S3Bucket)
}

func (c *checkup) checkCertificate() {
	const subject = "certificate"
	files := c.settings.TLS
	if !files.Configured() {
		c.ok(subject, "none: a proxy ends TLS")
		return
	}
	read, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		c.fail(subject, "VIGIL_TLS_CERT_FILE and VIGIL_TLS_KEY_FILE cannot be read as a certificate and its key")
		return
	}
	switch word, useless := aboutCertificate(read.Leaf.NotBefore, read.Leaf.NotAfter, c.now); {
	case useless:
		c.fail(subject, "%s", word)
	case word != "":
		c.warn(subject, "%s", word)
	default:
		c.ok(subject, "valid until %s", read.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// checkWarehouse looks whether what leaves could be written. A bucket is that of the backups, which has been looked at.
func (c *checkup) checkWarehouse() {
	w := c.settings.Warehouse
	if !w.Configured() || w.Folder == "" {
		return
	}
	const subject = "warehouse"
	if err := backup.Writable(w.Folder); err != nil {
		c.fail(subject, "%s cannot be written: %v", w.Folder, reasonOf(err))
		return
	}
	c.ok(subject, "%s takes files", w.Folder)
}
