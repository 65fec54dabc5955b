package auth

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// LaunchedPatient is the patient in the context of a launch.
type LaunchedPatient struct {
	ID string // "" without one
	// Problem is why there is none: "no_patient" (the EMR named none), "other_system" (its patients are not known here) or "unknown_patient".
	Problem string
}

// LaunchedSession is the session of a launch. The patient is also set when the sign-in stops at the
// second factor.
type LaunchedSession struct {
	Session
	Patient LaunchedPatient
}

// LaunchLife is how long a launch may take, and afterwards the sign-in that links it.
const LaunchLife = 2 * stateLife

// CanLaunch reports whether an EMR may launch this service.
func (e *Engine) CanLaunch() bool { return e.options.Launcher != nil }

// BeginLaunch starts the sign-in of a launch from an EMR. A refusal of an unknown issuer is audited.
func (e *Engine) BeginLaunch(ctx context.Context, app core.App, issuer, launch, cookie string, from audit.Origin, now time.Time) (SignOnStart, error) {
	if e.options.Launcher == nil {
		return SignOnStart{}, LaunchNotConfigured()
	}
	start, err := e.options.Launcher.Begin(ctx, issuer, launch, cookie, now)
	if refused, ok := errors.AsType[*fault.Error](err); ok && refused.Code == "unknown_issuer" {
		unknown := attempt{emailKey: e.sealer.LoginKey("issuer\x00" + issuer), from: from, now: now}
		if e := unknown.record(app, audit.LoginFailed, audit.MinorFailure, "A launch from an EMR that is not configured."); e != nil {
			return SignOnStart{}, e
		}
	}
	return start, err
}

// FinishLaunch completes the sign-in of a launch. It checks, in order: the state and its cookie; that the state was not used before; the ID token;
// that the EMR's user is linked to an account (account_not_linked, with a ticket for [Engine.LinkLaunch]); that the account may be used; and the
// second factor, unless the EMR required one (totp_required, with a temporary token). Source: docs/decisions/authentication.md, "Launch from the
// EMR".
func (e *Engine) FinishLaunch(ctx context.Context, app core.App, callback Callback, from audit.Origin, now time.Time) (LaunchedSession, error) {
	if e.options.Launcher == nil {
		return LaunchedSession{}, LaunchNotConfigured()
	}
	callback.recordUse = recordStateUse(app, now)
	identity, err := e.options.Launcher.Finish(ctx, callback, now)
	if err != nil {
		return LaunchedSession{}, err
	}
	patient, err := launchedPatient(app, identity)
	if err != nil {
		return LaunchedSession{}, err
	}
	s := signOn{
		identity: identity.Identity, from: from, now: now, method: "smart", patient: patient,
		key: e.sealer.LoginKey("identity\x00" + identity.Issuer + "\x00" + identity.Subject),
	}
	session, err := commitQueuedDecision(ctx, e, app, func(tx core.App) (Session, error, error) { return e.decideLaunch(tx, s, callback.Cookie) })
	return LaunchedSession{session, patient}, err
}

// launchedPatient finds the patient by the EMR's id.
func launchedPatient(app core.App, identity LaunchIdentity) (LaunchedPatient, error) {
	switch {
	case identity.PatientID == "":
		return LaunchedPatient{Problem: "no_patient"}, nil
	case !identity.HasKnownPatients:
		return LaunchedPatient{Problem: "other_system"}, nil
	}
	patient, err := nilIfMissing(collections.FindPatientByExternalID(app, identity.PatientID.Reveal()))
	if err != nil || patient == nil {
		return LaunchedPatient{Problem: "unknown_patient"}, err
	}
	return LaunchedPatient{ID: patient.Id}, nil
}

func (e *Engine) decideLaunch(tx core.App, s signOn, cookie string) (session Session, refused, err error) {
	id, err := collections.UserOfIdentity(tx, s.identity.Issuer, s.identity.Subject)
	if collections.IsNotFound(err) {
		ticket, err := e.options.Launcher.signTicket(s, cookie)
		if err != nil {
			return session, nil, err
		}
		return s.auditRejection(tx, nil, launchNotLinked().With("ticket", ticket), "The EMR's user is not linked to an account.")
	}
	if err != nil {
		return session, nil, err
	}
	user, err := collections.FindUser(tx, id)
	if err != nil {
		return session, nil, err
	}
	if usable, err := isUsable(tx, user); err != nil || !usable {
		if err != nil {
			return session, nil, err
		}
		return s.auditRejection(tx, user, authenticationFailed(), "The account is inactive.")
	}
	if err := collections.Readable(user.ProxyRecord()); err != nil {
		return session, nil, err
	}
	if err := collections.MarkIdentityUsed(tx, s.identity.Issuer, s.identity.Subject, s.now); err != nil {
		return session, nil, err
	}
	return e.completeSignOn(tx, s, user)
}

func launchNotLinked() *fault.Error {
	return fault.New(fault.Forbidden, "account_not_linked", "Your account in the EMR is not linked to one here. Sign in once to link them.")
}

// launchTicket is the proof of a launch by a user without a link.
type launchTicket struct {
	Issuer  string          `json:"iss"`
	Subject string          `json:"sub"`
	Ends    time.Time       `json:"ends"`
	Patient LaunchedPatient `json:"patient"`
}

// signTicket returns the ticket with a MAC over itself and the browser's cookie, so that only the
// launched browser can use it: a stranger cannot make another person link a foreign identity.
func (l *Launcher) signTicket(s signOn, cookie string) (string, error) {
	raw, err := json.Marshal(launchTicket{s.identity.Issuer, s.identity.Subject, s.now.Add(stateLife), s.patient})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(raw)
	return text + "." + l.ticketMAC(text, cookie), nil
}

func (l *Launcher) ticketMAC(text, cookie string) string {
	return base64.RawURLEncoding.EncodeToString(phi.MAC(l.options.Key, "ticket\x00"+text+"\x00"+cookie))
}

func (l *Launcher) readTicket(signed, cookie string, now time.Time) (t launchTicket, err error) {
	text, mac, _ := strings.Cut(signed, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || cookie == "" || !hmac.Equal([]byte(mac), []byte(l.ticketMAC(text, cookie))) || json.Unmarshal(raw, &t) != nil || !now.Before(t.Ends) {
		return launchTicket{}, UnknownState()
	}
	return t, nil
}

// LaunchTicketBody is the ticket that [Engine.FinishLaunch] returns for a user without a link.
type LaunchTicketBody struct {
	Ticket validate.String `json:"ticket"`
}

// LinkLaunch links a launch's EMR user to the signed-in caller and returns the launch's patient. It
// rejects with reauthentication_required if the caller did not just sign in, with
// invalid_oauth_state if another browser was launched or the ticket is used or expired, and with
// identity_conflict if either side is linked to another account.
func (e *Engine) LinkLaunch(app core.App, caller Caller, body LaunchTicketBody, cookie string, from audit.Origin, now time.Time) (LaunchedPatient, error) {
	checks := validate.NewChecks()
	signed := checks.Secret("ticket", body.Ticket, 4000)
	if err := checks.Err(); err != nil {
		return LaunchedPatient{}, err
	}
	if e.options.Launcher == nil {
		return LaunchedPatient{}, LaunchNotConfigured()
	}
	t, err := e.options.Launcher.readTicket(signed, cookie, now)
	if err != nil {
		return LaunchedPatient{}, err
	}
	if fresh, err := e.isFresh(app, caller, now); err != nil || !fresh {
		if err != nil {
			return LaunchedPatient{}, err
		}
		return LaunchedPatient{}, fault.New(fault.Forbidden, "reauthentication_required", "Sign in again to link your account in the EMR.")
	}
	_, err = e.changeExistingUser(app, caller.RecordID, func(tx core.App, user *collections.User) (refused, err error) {
		if first, err := collections.UseChallenge(tx, HashSecret(signed), now, t.Ends); err != nil || !first {
			return UnknownState(), err
		}
		if refused, err := checkLinkConflict(tx, user, t); refused != nil || err != nil {
			return refused, err
		}
		if err := collections.AddIdentity(tx, user.Id, t.Issuer, t.Subject, now); err != nil {
			return nil, err
		}
		if err := notifications.QueueMail(tx, notifications.IdentityLinked, user, nil, now); err != nil {
			return nil, err
		}
		return nil, audit.Append(tx, userEntry(user, audit.IdentityLinked, caller.Actor(from)), now)
	})
	return t.Patient, err
}

// checkLinkConflict rejects a link if the EMR user or the account already has another one.
func checkLinkConflict(tx core.App, user *collections.User, t launchTicket) (refused, err error) {
	_, err = collections.UserOfIdentity(tx, t.Issuer, t.Subject)
	isLinked := err == nil
	if err != nil && !collections.IsNotFound(err) {
		return nil, err
	}
	hasOther, err := collections.HasIdentity(tx, user.Id, t.Issuer)
	if err != nil || !isLinked && !hasOther {
		return nil, err
	}
	return fault.New(fault.Conflict, "identity_conflict",
		"Your account here or the one in the EMR is linked to another account. An administrator can remove that link under Operations, Users."), nil
}
