package emr

import (
	"context"
	"crypto/sha1" //nolint:gosec // FHIR R4 prescribes it: Attachment.hash
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/vigilhealth/vigil/internal/fhir"
)

// maxDocument bounds the bytes read of a copy, which may have the PDF in it.
const maxDocument = 32 << 20

// DocumentCopy is a version of a document that the EMR may have.
type DocumentCopy struct {
	ID       string // UUID of the version
	Patient  string // the EMR's id
	Type     string // LOINC code
	Hash     string // SHA-1 of the PDF in base64
	From, To time.Time
	MadeAt   time.Time
}

// foundDocument is the part of a DocumentReference by which a copy is recognized.
type foundDocument struct {
	Status           string
	MasterIdentifier struct{ System, Value string }
	Type             codeable
	Subject          struct{ Reference string }
	Date             time.Time
	Content          []struct {
		Attachment struct{ Hash, Data string }
	}
	Context struct {
		Period struct{ Start, End time.Time }
	}
}

func readDocument(raw json.RawMessage) (d foundDocument) {
	_ = json.Unmarshal(raw, &d) // what cannot be read matches nothing
	return d
}

// hash returns the hash of the attachment, computed if the EMR returns the PDF only; "" if neither is there.
func (d foundDocument) hash() string {
	if len(d.Content) != 1 {
		return ""
	}
	of := d.Content[0].Attachment
	if pdf, err := base64.StdEncoding.DecodeString(of.Data); of.Hash == "" && of.Data != "" && err == nil {
		sum := sha1.Sum(pdf) //nolint:gosec // prescribed
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return of.Hash
}

func (d DocumentCopy) hasIdentifier(found foundDocument) bool {
	return found.MasterIdentifier.System == identifierSystem && strings.EqualFold(found.MasterIdentifier.Value, identifierPrefix+d.ID)
}

// isOfPeriod reports whether a result is about the same patient and period, and is none of another version.
func (d DocumentCopy) isOfPeriod(found foundDocument) bool {
	const toMinute = time.Minute
	near := func(a, b time.Time) bool { return a.Sub(b).Abs() <= toMinute }
	return referenceID(found.Subject.Reference) == d.Patient && near(found.Context.Period.Start, d.From) && near(found.Context.Period.End, d.To.Add(-time.Second)) &&
		(found.MasterIdentifier.System != identifierSystem || d.hasIdentifier(found))
}

// matches reports whether a result is the version: by its identifier, else by patient, period and the hash of its PDF.
func (d DocumentCopy) matches(found foundDocument) bool {
	return d.hasIdentifier(found) || d.isOfPeriod(found) && found.hash() == d.Hash
}

func (d DocumentCopy) sought() sought { return sought{id: d.ID, query: "document " + d.ID} }

// CreateDocument delivers a DocumentReference like [Client.CreateObservation] an Observation. Source: docs/decisions/fhir.md, "Documents".
func (c *Client) CreateDocument(ctx context.Context, d DocumentCopy, resource []byte, requestID string) (Created, error) {
	conditional, _ := c.conditionalDocuments()
	request := call{
		method: http.MethodPost, path: "/" + documentType, body: resource, requestID: requestID, maxBody: maxDocument,
		header:      http.Header{"Content-Type": {fhir.ContentType}},
		lookup:      func(ctx context.Context) (string, bool, error) { return c.findDocument(ctx, d, true) },
		onResend:    func() { c.searches.recordSend(d.sought(), c.transport.now()) },
		onAbandoned: func() { c.searches.recordAbandoned(d.sought(), c.transport.now()) },
	}
	if conditional {
		request.header.Set("If-None-Exist", "identifier="+identifierSystem+"|"+identifierPrefix+d.ID)
	}
	began := c.transport.now()
	c.searches.recordSend(d.sought(), began)
	got, attempts, err := c.send(ctx, request)
	if e, failed := errors.AsType[*Error](err); failed {
		c.checkPatient(ctx, resource, e, began)
		return Created{}, e
	}
	if got.lookedUp != "" {
		return Created{EMRID: got.lookedUp, AlreadyThere: true, Attempts: attempts}, nil
	}
	id, isMatch := createdID(got, documentType), conditional && got.status == http.StatusOK
	if got.status == http.StatusOK && id == "" && (!isMatch || !maybeFHIR(got.body)) {
		e := invalidSuccess(got, attempts)
		e.Ambiguous = true
		return Created{}, e
	}
	return Created{EMRID: id, AlreadyThere: isMatch, Attempts: attempts}, nil
}

// FindDocument searches for a version after an unknown outcome: by its identifier, else by patient, category and date, or type, comparing period and
// hash. Its errors are those of [Client.FindObservation]. Source: docs/decisions/transmissions.md, "Documents".
func (c *Client) FindDocument(ctx context.Context, d DocumentCopy) (emrID string, found bool, err error) {
	return c.findDocument(ctx, d, false)
}

func (c *Client) findDocument(ctx context.Context, d DocumentCopy, once bool) (emrID string, found bool, err error) {
	_, isSafe := c.conditionalDocuments()
	l := lookup{sought: d.sought(), once: once, isRecovered: !once, mustBeCurrent: !isSafe}
	unanswered := noLookUp(&Error{})
	for _, search := range d.searches(c.documents()) {
		emrID, err := c.searchCopy(ctx, l, search)
		e, failed := errors.AsType[*Error](err)
		switch {
		case !failed:
			return emrID, emrID != "", nil
		case !e.NeedsPerson, e.isNear:
			return "", false, e
		}
		if unanswered = e; e.Status == http.StatusForbidden { // a missing scope forbids every search
			break
		}
	}
	if isSafe {
		return "", false, nil
	}
	return "", false, unanswered
}

// searches are the ways to search for a version that the EMR offers, the surest first. Source: US Core, DocumentReference: required searches.
func (d DocumentCopy) searches(offer *DocumentOffer) (searches []copySearch) {
	is := func(test func(foundDocument) bool) func(foundObservation) (bool, error) {
		return func(r foundObservation) (bool, error) { return test(readDocument(r.raw)), nil }
	}
	s := copySearch{resourceType: documentType, isCopy: is(d.matches), isNear: is(func(foundDocument) bool { return false })}
	if offer.searchesBy("identifier") {
		byID := s
		byID.key, byID.query = d.ID, url.Values{"identifier": {identifierSystem + "|" + identifierPrefix + d.ID}}.Encode()
		byID.isForeign = func(foundObservation) bool { return true }
		if offer == nil {
			byID.parameter = "identifier"
		}
		searches = append(searches, byID)
	}
	since := d.MadeAt.Add(-24 * time.Hour)
	s.isNear = is(func(r foundDocument) bool { return d.isOfPeriod(r) && r.hash() == "" && r.Status != "superseded" })
	query := url.Values{"patient": {d.Patient}}
	switch {
	case offer.searchesBy("patient", "category", "date"):
		s.parameter = "date"
		query.Set("category", fhir.DocumentCategory)
		query.Set("date", "ge"+since.UTC().Format(time.RFC3339))
	case offer.searchesBy("patient", "type"):
		s.parameter = "type"
		query.Set("type", "http://loinc.org|"+d.Type)
	default:
		return searches
	}
	s.key, s.query = d.sought().query, query.Encode()
	s.isForeign = func(r foundObservation) bool {
		found := readDocument(r.raw)
		isEarlier := s.parameter == "date" && !found.Date.IsZero() && found.Date.Before(since.Add(-searchMargin))
		return referenceID(found.Subject.Reference) != d.Patient || isEarlier
	}
	return append(searches, s)
}

// UpdateDocument replaces the EMR's copy in place, like [Client.UpdateObservation]. An EMR that offers no updates refuses with CodeUpdateRefused.
func (c *Client) UpdateDocument(ctx context.Context, d DocumentCopy, emrID string, resource []byte, requestID string, ambiguous bool) (Created, error) {
	if !c.updatesDocuments() {
		return Created{}, &Error{Code: CodeUpdateRefused, Message: "Update not offered by EMR", Ambiguous: ambiguous}
	}
	remote := &remoteCopy{client: c, path: "/" + documentType + "/" + emrID, resource: resource, same: func(copied, _ []byte) bool {
		return d.matches(readDocument(copied))
	}}
	return c.update(ctx, remote, emrID, requestID, ambiguous)
}

// IsDocumentCurrent implements [EMR].
func (c *Client) IsDocumentCurrent(ctx context.Context, emrID string) bool {
	got, _, err := c.send(ctx, call{
		method: http.MethodGet, path: "/" + documentType + "/" + emrID, requestID: uuid.NewString(), maxBody: maxDocument, header: uncached, once: true,
	})
	if e, failed := errors.AsType[*Error](err); failed {
		return e.Status != http.StatusGone && e.Status != http.StatusNotFound
	}
	return !slices.Contains([]string{"superseded", "entered-in-error"}, readDocument(got.body).Status)
}
