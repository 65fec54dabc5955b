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

// externalTimeout is how long check waits for one external service.
const externalTimeout = 20 * time.Second

func (c *checkup) checkSMTP(ctx context.Context) {
	const subject = "SMTP"
	m := c.settings.SMTP
	server := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
	switch {
	case !m.Configured():
		c.ok(subject, "not set up: no mail is sent")
	case !c.deep:
		c.ok(subject, "%s; not checked without --deep", server)
	default:
		if err := probeMailServer(ctx, m, server); err != nil {
			c.fail(subject, "%s %v", server, err)
			return
		}
		c.ok(subject, "%s accepts mail", server)
	}
}

// probeMailServer performs every step of sending a mail except the mail. Errors contain the server's reply codes, never its text.
func probeMailServer(ctx context.Context, m config.SMTP, server string) error {
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return errors.New("cannot be reached")
	}
	defer func() { _ = connection.Close() }() // nothing is left to send
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline) // without a deadline, the context closes the connection
	}
	trust := &tls.Config{ServerName: m.Host, MinVersion: tls.VersionTLS12}
	if m.TLS {
		secured := tls.Client(connection, trust)
		if err := secured.HandshakeContext(ctx); err != nil {
			return errors.New("does not offer trusted TLS")
		}
		connection = secured
	}
	client, err := smtp.NewClient(connection, m.Host)
	if err != nil {
		return withReplyCode("does not respond", err)
	}
	if offered, _ := client.Extension("STARTTLS"); offered && !m.TLS {
		if err := client.StartTLS(trust); err != nil {
			return withReplyCode("does not offer trusted TLS", err)
		}
	}
	if m.Username != "" || m.Password != "" {
		if err := client.Auth(smtp.PlainAuth("", m.Username, m.Password.Reveal(), m.Host)); err != nil {
			return withReplyCode("rejects VIGIL_SMTP_USERNAME", err)
		}
	}
	_ = client.Quit() // the check is complete
	return nil
}

func withReplyCode(what string, err error) error {
	if refused, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("%s: reply code %d", what, refused.Code)
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
		c.ok(subject, "%s; not checked without --deep", client.BaseURL())
		return
	case interactive: // a user's tokens change when used, and belong to the service
		c.ok(subject, "%s; connected by a user's sign-in: see GET /api/v1/emr/auth/status/", client.BaseURL())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	if _, err := client.SignIn(ctx); err != nil {
		c.fail(subject, "%s issues no token: %v", client.BaseURL(), err)
		return
	}
	capability, err := client.Metadata(ctx)
	switch {
	case err != nil:
		c.fail(subject, "%s issues a token, but no capability statement: %v", client.BaseURL(), err)
	case !capability.Supports(audit.ResourceObservation, "create"):
		c.warn(subject, "%s issues a token, but its capability statement does not list creating observations", client.BaseURL())
	default:
		c.ok(subject, "%s issues a token and accepts observations", client.BaseURL())
	}
}

// checkSignOn contacts the configured identity provider. Otherwise the first user to sign in would find it unavailable.
func (c *checkup) checkSignOn(ctx context.Context) {
	const subject = "OIDC"
	o := c.settings.OIDC
	switch {
	case !o.Configured():
		return
	case !c.deep:
		c.ok(subject, "%s; not checked without --deep", o.Issuer)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	if err := auth.NewOIDCProvider(auth.OIDCOptions{Issuer: o.Issuer}).CheckConfiguration(ctx, c.now); err != nil {
		c.fail(subject, "%s %v", o.Issuer, err)
		return
	}
	c.ok(subject, "%s returns its sign-in configuration", o.Issuer)
}

func (c *checkup) checkBucket(ctx context.Context) {
	const subject = "bucket"
	b := c.settings.Backup
	switch {
	case b.S3Bucket == "":
		c.ok(subject, "not set up: backups are kept in %s", backupFolder(c.program.dir, c.settings))
		return
	case !c.deep:
		c.ok(subject, "%s; not checked without --deep", b.S3Bucket)
		return
	case c.settings.RequireEncryption() != nil:
		return // checkKeys reports it
	}
	opened, err := openBackups(c.program.dir, c.settings)
	if err != nil {
		c.fail(subject, "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	if err := errors.Join(opened.store.Probe(ctx), opened.store.Close()); err != nil {
		c.fail(subject, "%v", err)
		return
	}
	c.ok(subject, "%s accepts backups", b.S3Bucket)
}

func (c *checkup) checkCertificate() {
	const subject = "certificate"
	files := c.settings.TLS
	if !files.Configured() {
		c.ok(subject, "none: a proxy terminates TLS")
		return
	}
	read, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		c.fail(subject, "VIGIL_TLS_CERT_FILE and VIGIL_TLS_KEY_FILE cannot be read as a certificate and its key")
		return
	}
	switch word, useless := validityProblem(read.Leaf.NotBefore, read.Leaf.NotAfter, c.now); {
	case useless:
		c.fail(subject, "%s", word)
	case word != "":
		c.warn(subject, "%s", word)
	default:
		c.ok(subject, "valid until %s", read.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// checkWarehouse checks whether the export folder is writable. checkBucket checks a bucket.
func (c *checkup) checkWarehouse() {
	w := c.settings.Warehouse
	if !w.Configured() || w.Folder == "" {
		return
	}
	const subject = "warehouse"
	if err := backup.CheckWritable(w.Folder); err != nil {
		c.fail(subject, "%s cannot be written: %v", w.Folder, reasonOf(err))
		return
	}
	c.ok(subject, "%s is writable", w.Folder)
}
