package routes

import (
	"errors"
	"net/http"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/messaging/inbox"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

func messageRows() []route {
	return []route{
		{http.MethodGet, "/patients/{id}/messages/", authz.ReadMessages, ratelimit.User, withPatient((*api).listMessages)},
		{http.MethodPost, "/patients/{id}/messages/", authz.SendMessages, ratelimit.User, withPatient((*api).sendMessage)},
		{http.MethodPost, "/patients/{id}/messages/{message}/read/", authz.MarkMessages, ratelimit.User, withPatient((*api).readText)},
		{http.MethodPost, "/messaging/status/", authz.SignedByGateway, ratelimit.Webhook, (*api).receiveMessageStatus},
	}
}

type messageView struct {
	ID        string  `json:"id"`
	PatientID string  `json:"patient_id"`
	Direction string  `json:"direction"`
	Channel   string  `json:"channel"`
	Template  *string `json:"template"`
	Language  *string `json:"language"`
	Text      string  `json:"text"`
	State     string  `json:"state"`
	Reason    *string `json:"reason"`
	Automatic bool    `json:"automatic"`
	Author    string  `json:"author"`
	DueAt     *string `json:"due_at"`
	SentAt    *string `json:"sent_at"`
	CreatedAt *string `json:"created_at"`
	ReadAt    *string `json:"read_at"`
	ReadBy    *string `json:"read_by"`
}

// viewMessages renders messages; the portal shows no names of staff.
func viewMessages(role authz.Role) func(core.App, []*collections.Message) ([]messageView, error) {
	return func(_ core.App, page []*collections.Message) ([]messageView, error) {
		return web.Map(page, func(m *collections.Message) messageView {
			view := messageView{
				ID: m.Id, PatientID: m.PatientID(), Direction: m.Direction(), Channel: m.Channel(), Template: orNull(m.Template()), Language: orNull(m.Language()),
				Text: m.Text().Reveal(), State: m.State(), Reason: orNull(m.Reason()), Automatic: m.Automatic(), Author: m.Author(), DueAt: instantOrNull(m.DueAt()),
				SentAt: instantOrNull(m.SentAt()), CreatedAt: instantOrNull(m.CreatedAt()), ReadAt: instantOrNull(m.ReadAt()), ReadBy: orNull(m.ReadBy()),
			}
			if role == authz.Patient {
				view.ReadBy = nil
				if strings.Contains(view.Author, "@") {
					view.Author = "staff"
				}
			}
			return view
		}), nil
	}
}

func (a *api) listMessages(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	return listOfPatient(c, p, patient.Id, audit.ResourceMessage, viewMessages(c.Caller.Role))(collections.PageOfMessages(c.App, patient.Id, p.Offset(), p.Size))
}

// messageBody is the body that sends a message.
type messageBody struct {
	Template validate.String `json:"template"`
	Text     validate.String `json:"text"`
	Channel  validate.String `json:"channel"`
}

func (a *api) sendMessage(c *web.Call, patient *collections.Patient) error {
	if c.Caller.Role == authz.Patient {
		return a.writeToTeam(c, patient)
	}
	staff, err := web.Read(c, func(body messageBody, checks *validate.Checks) messaging.StaffMessage {
		return messaging.StaffMessage{
			Template: messaging.Template(checks.Text("template", body.Template, validate.Required(0).OneOf(messaging.StaffTemplates...))),
			Text:     phi.Text(checks.Text("text", body.Text, validate.Optional(messaging.MaxPortalText).Multiline())),
			Channel:  checks.Text("channel", body.Channel, validate.Optional(0).OneOf(collections.ChannelSMS, collections.ChannelVoice, collections.ChannelPortal)),
		}
	})
	if err != nil {
		return err
	}
	if staff.Author, err = collections.FindUser(c.App, c.Caller.RecordID); err != nil {
		return err
	}
	m, err := messaging.QueueForStaff(c.App, patient.Id, staff, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	if m.State() == collections.MessageQueued {
		a.Messages.Wake()
	}
	return show(c, c.Created, viewMessages(c.Caller.Role))(m, nil)
}

// writeToTeam takes a message that a patient wrote in the portal.
func (a *api) writeToTeam(c *web.Call, patient *collections.Patient) error {
	text, err := web.Read(c, func(body struct {
		Text validate.String `json:"text"`
	}, checks *validate.Checks,
	) phi.Text {
		return phi.Text(checks.Text("text", body.Text, validate.Required(messaging.MaxPortalText).Multiline()))
	})
	if err != nil {
		return err
	}
	m, err := inbox.ReceiveFromPortal(c.App, a.IngestPipeline, patient, text, c.Actor(), c.Now)
	return show(c, c.Created, viewMessages(c.Caller.Role))(m, err)
}

// readText records that a person read a patient's text and the earlier ones.
func (a *api) readText(c *web.Call, patient *collections.Patient) error {
	m, err := inbox.Close(c.App, patient.Id, c.Request.PathValue("message"), c.Actor(), c.Now)
	return show(c, c.OK, viewMessages(c.Caller.Role))(m, err)
}

// receiveMessageStatus records a provider's report about a message. The signature covers the public
// address that the provider called.
func (a *api) receiveMessageStatus(c *web.Call) error {
	q := c.Query()
	message := q.Text("message", 36)
	if err := q.Err(); err != nil {
		return err
	}
	body, err := a.verifiedByProvider(c)
	if err != nil {
		return err
	}
	status, err := a.Messages.Provider.ReadStatus(body, message)
	if err != nil {
		return fault.New(fault.Invalid, "parse_error", "The body is not a state of a message.").Because(err)
	}
	return c.NoContent(fault.OrMissing(messaging.ApplyStatus(c.App, status, c.Now)))
}

// verifiedByProvider returns the body of a request that the messaging provider signed.
func (a *api) verifiedByProvider(c *web.Call) ([]byte, error) {
	if a.Messages == nil {
		return nil, fault.Missing()
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	err = a.Messages.Provider.Verify(c.Request.Header, c.Request.URL.RequestURI(), body, c.Now)
	if errors.Is(err, messaging.ErrSignature) {
		return nil, a.auditUnsigned(c, body, fault.New(fault.Unauthenticated, "invalid_signature", "The signature is missing or wrong."))
	}
	return body, err
}
