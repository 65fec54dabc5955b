package notifications

import (
	"fmt"
	htmltemplate "html/template"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"
)

// Template identifies a mail.
type Template string

// The mail templates, with their parameters.
const (
	Welcome             Template = "welcome"        // link
	PasswordReset       Template = "password_reset" // link
	PasswordChanged     Template = "password_changed"
	TwoFactorDisabled   Template = "two_factor_disabled"
	TwoFactorEnabled    Template = "two_factor_enabled"
	BackupCodeUsed      Template = "backup_code_used" // left
	BackupCodesReplaced Template = "backup_codes_replaced"
	IdentityLinked      Template = "identity_linked"
	PasskeyAdded        Template = "passkey_added"
	PasskeyRemoved      Template = "passkey_removed"
	PasskeyRejected     Template = "passkey_refused"
	SessionsEnded       Template = "sessions_ended"
	CaregiverAdded      Template = "caregiver_added" // address, email
	AccountLocked       Template = "account_locked"  // to administrators
	ProgramAccess       Template = "program_access"  // to administrators
	AuditBroken         Template = "audit_broken"    // to administrators
	BatteryLow          Template = "battery_low"     // to a care team
)

// Templates lists all templates.
func Templates() []Template { return slices.Sorted(maps.Keys(mailTexts)) }

// mailText is the content of one mail. Paragraphs are templates over the mail's parameters; a link follows the first.
type mailText struct {
	subject    string
	paragraphs []string
	link       bool
	// spanish is the subject and the paragraphs for patients and caregivers; nil for mails that only staff get.
	spanish []string
	// validFor is how long the mail may be sent; its link may expire after that.
	validFor time.Duration
}

const day = 24 * time.Hour

// mailTexts holds the content of every template.
var mailTexts = map[Template]mailText{
	Welcome: {subject: "Your account", link: true, validFor: day, paragraphs: []string{
		"An account was made for you at {{.address}}. You sign in with {{.email}}. Set your password with this link, which works once, within 24 hours:",
		"If you did not expect this, you can ignore it.",
	}, spanish: []string{
		"Su cuenta",
		"Se creó una cuenta para usted en {{.address}}. Inicie sesión con {{.email}}. Cree su contraseña con este enlace, que sirve una vez, durante 24 horas:",
		"Si no lo esperaba, puede ignorar este correo.",
	}},
	PasswordReset: {subject: "Set a new password", link: true, validFor: time.Hour, paragraphs: []string{
		"A new password was requested for your account. Set it with this link, which works once, within one hour:",
		"If it was not you, ignore this mail: your password stays as it is.",
	}, spanish: []string{
		"Cree una contraseña nueva",
		"Se pidió una contraseña nueva para su cuenta. Créela con este enlace, que sirve una vez, durante una hora:",
		"Si no fue usted, ignore este correo: su contraseña sigue igual.",
	}},
	PasswordChanged: {subject: "Your password was changed", validFor: 3 * day, paragraphs: []string{
		"The password of your account was changed, and all devices were signed out.",
		"If it was not you, request a new password at once and inform your administrator.",
	}, spanish: []string{
		"Su contraseña cambió",
		"La contraseña de su cuenta cambió, y se cerró la sesión en todos los aparatos.",
		"Si no fue usted, pida una contraseña nueva enseguida y avise al consultorio.",
	}},
	TwoFactorDisabled: {subject: "Two-factor authentication was turned off", validFor: 3 * day, paragraphs: []string{
		"Two-factor authentication was turned off for your account, and all devices were signed out.",
		"If it was not you or your administrator, change your password at once and inform your administrator.",
	}, spanish: []string{
		"El segundo factor se desactivó",
		"El segundo factor de su cuenta se desactivó, y se cerró la sesión en todos los aparatos.",
		"Si no fue usted ni el consultorio, cambie su contraseña enseguida y avise al consultorio.",
	}},
	TwoFactorEnabled: {subject: "Two-factor authentication was turned on", validFor: 3 * day, paragraphs: []string{
		"Two-factor authentication was turned on for your account. Signing in needs a code of the authenticator app now.",
		"If it was not you, inform your administrator at once, who can turn it off, and change your password.",
	}, spanish: []string{
		"El segundo factor se activó",
		"El segundo factor de su cuenta se activó. Ahora, para iniciar sesión, se pide un código de la aplicación de autenticación.",
		"Si no fue usted, avise enseguida al consultorio, que puede desactivarlo, y cambie su contraseña.",
	}},
	BackupCodesReplaced: {subject: "New backup codes were made", validFor: 3 * day, paragraphs: []string{
		"New backup codes were made for your account. The old ones are invalid.",
		"If it was not you, change your password at once and inform your administrator.",
	}, spanish: []string{
		"Hay nuevos códigos de respaldo",
		"Se crearon nuevos códigos de respaldo para su cuenta. Los anteriores ya no sirven.",
		"Si no fue usted, cambie su contraseña enseguida y avise al consultorio.",
	}},
	IdentityLinked: {subject: "Your account was linked to single sign-on", validFor: 3 * day, paragraphs: []string{
		"An account of the practice's identity provider was linked to yours and can sign in to it.",
		"If it was not you, inform your administrator at once, who can remove the link.",
	}, spanish: []string{
		"Su cuenta se vinculó al inicio de sesión único",
		"Una cuenta del proveedor de identidad del consultorio se vinculó a la suya y puede iniciar sesión en ella.",
		"Si no fue usted, avise enseguida al consultorio, que puede quitar el vínculo.",
	}},
	BackupCodeUsed: {subject: "A backup code was used", validFor: 3 * day, paragraphs: []string{
		"A backup code was used to sign in to your account. Unused codes left: {{.left}}.",
		"If it was not you, change your password at once and inform your administrator.",
	}, spanish: []string{
		"Se usó un código de respaldo",
		"Se usó un código de respaldo para iniciar sesión en su cuenta. Códigos que quedan: {{.left}}.",
		"Si no fue usted, cambie su contraseña enseguida y avise al consultorio.",
	}},
	PasskeyAdded: {subject: "A passkey was added", validFor: 3 * day, paragraphs: []string{
		"A passkey was added to your account. It can be used to sign in.",
		"If it was not you, sign in, remove it, change your password at once and inform your administrator.",
	}, spanish: []string{
		"Se agregó una llave de acceso",
		"Se agregó una llave de acceso a su cuenta. Sirve para iniciar sesión.",
		"Si no fue usted, inicie sesión, quítela, cambie su contraseña enseguida y avise al consultorio.",
	}},
	PasskeyRemoved: {subject: "A passkey was removed", validFor: 3 * day, paragraphs: []string{
		"A passkey was removed from your account.",
		"If it was not you or your administrator, change your password at once and inform your administrator.",
	}, spanish: []string{
		"Se quitó una llave de acceso",
		"Se quitó una llave de acceso de su cuenta.",
		"Si no fue usted ni el consultorio, cambie su contraseña enseguida y avise al consultorio.",
	}},
	PasskeyRejected: {subject: "A passkey was refused", validFor: 3 * day, paragraphs: []string{
		"A passkey of your account was refused, because its count of uses went backwards. It may have been copied.",
		"Remove it, register another and inform your administrator.",
	}, spanish: []string{
		"Se rechazó una llave de acceso",
		"Se rechazó una llave de acceso de su cuenta, porque su número de usos retrocedió. Puede haber sido copiada.",
		"Quítela, registre otra y avise al consultorio.",
	}},
	SessionsEnded: {subject: "You were signed out on one device", validFor: 3 * day, paragraphs: []string{
		"A sign-in of your account was ended because its token was used twice. It may have been copied.",
		"Sign in again. If this happens more than once, change your password and inform your administrator.",
	}, spanish: []string{
		"Se cerró su sesión en un aparato",
		"Se cerró una sesión de su cuenta porque su clave se usó dos veces. Puede haber sido copiada.",
		"Inicie sesión otra vez. Si ocurre más de una vez, cambie su contraseña y avise al consultorio.",
	}},
	CaregiverAdded: {subject: "You can help with another person's readings", validFor: 3 * day, paragraphs: []string{
		"Your account can now show the readings of another person. Sign in at {{.address}} with {{.email}}.",
		"If you did not expect this, contact the practice.",
	}, spanish: []string{
		"Puede ayudar con las mediciones de otra persona",
		"Su cuenta puede mostrar ahora las mediciones de otra persona. Inicie sesión en {{.address}} con {{.email}}.",
		"Si no lo esperaba, llame al consultorio.",
	}},
	AccountLocked: {subject: "An account was locked", validFor: 3 * day, paragraphs: []string{
		"An account was locked after repeated failed logins.",
		"Sign in to see which one it is.",
	}},
	ProgramAccess: {subject: "The access of a program was changed", validFor: 3 * day, paragraphs: []string{
		"An administrator created or changed the access of a program to the practice's records: an API client or a webhook.",
		"Sign in to see which one it is and who did it. If no administrator expected this, remove it and end that administrator's sign-ins.",
	}},
	AuditBroken: {subject: "The audit trail does not verify", validFor: 3 * day, paragraphs: []string{
		"The daily check of the audit trail found that it was changed.",
		"Sign in to see where, and keep the data folder and its backups as they are.",
	}},
	BatteryLow: {subject: "The battery of a device is low", validFor: 3 * day, paragraphs: []string{
		"The battery of a device of one of your patients is low.",
		"Sign in to see which one it is.",
	}},
}

// renderedMail is a mail ready to send.
type renderedMail struct{ subject, text, html string }

// htmlTemplate renders the same paragraphs as HTML, escaped.
var htmlTemplate = htmltemplate.Must(htmltemplate.New("mail").Parse(`<!DOCTYPE html>
<html lang="{{.Language}}"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em">
{{range $i, $p := .Paragraphs}}<p>{{$p}}</p>
{{if and (eq $i 0) $.Link}}<p><a href="{{$.Link}}">{{$.Link}}</a></p>
{{end}}{{end}}</body></html>
`))

// isForPatients reports whether patients and caregivers get the mail; the others are for staff.
func (t Template) isForPatients() bool { return mailTexts[t].spanish != nil }

// render fills a mail in a language, or in English where there is no text in it. It fails if a parameter of the template is missing.
func (t Template) render(parameters map[string]string, language string) (renderedMail, error) {
	l, known := mailTexts[t]
	if !known {
		return renderedMail{}, fmt.Errorf("unknown mail template %q", t)
	}
	if language == Spanish && t.isForPatients() {
		l.subject, l.paragraphs = l.spanish[0], l.spanish[1:]
	} else {
		language = English
	}
	page := struct {
		Language, Subject string
		Paragraphs        []string
		Link              string
	}{Language: language, Subject: l.subject}
	if l.link {
		if page.Link = parameters["link"]; page.Link == "" {
			return renderedMail{}, fmt.Errorf("mail %s has no link", t)
		}
		if language == Spanish {
			page.Link += "&lang=" + Spanish // of the page that it opens, after the token
		}
	}
	var text strings.Builder
	for i, source := range l.paragraphs {
		paragraph, err := fillParagraph(source, parameters)
		if err != nil {
			return renderedMail{}, fmt.Errorf("mail %s: %w", t, err)
		}
		page.Paragraphs = append(page.Paragraphs, paragraph)
		text.WriteString(paragraph + "\n\n")
		if i == 0 && l.link {
			text.WriteString(page.Link + "\n\n")
		}
	}
	var body strings.Builder
	if err := htmlTemplate.Execute(&body, page); err != nil {
		return renderedMail{}, fmt.Errorf("mail %s: %w", t, err)
	}
	return renderedMail{subject: l.subject, text: strings.TrimSuffix(text.String(), "\n"), html: body.String()}, nil
}

func fillParagraph(source string, parameters map[string]string) (string, error) {
	parsed, err := template.New("").Option("missingkey=error").Parse(source)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, parameters)
	return out.String(), err
}
