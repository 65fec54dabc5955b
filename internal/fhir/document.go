package fhir

import (
	"crypto/sha1" //nolint:gosec // FHIR R4 prescribes it: Attachment.hash
	"encoding/base64"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// Document is a report in PDF about a period, for the patient's chart.
type Document struct {
	// ID is the UUID of the document in all its versions, VersionID that of this version.
	ID, VersionID string
	Type          string // LOINC code
	Title, Author string
	// From and To are what it covers, To exclusive, in the practice's time zone.
	From, To time.Time
	MadeAt   time.Time
	PDF      []byte
	// EMRID is the id of the EMR's copy that it updates; Replaces is that of the one that it replaces as a new document. At most one is set.
	EMRID, Replaces string
}

// DefaultDocumentType is LOINC 53576-5, a document with personal health monitoring data: measurements, their graphs, and notes of caregivers.
// Source: loinc.org/53576-5.
const DefaultDocumentType = "53576-5"

// DocumentCategory is the category of documents, the only one of US Core, and the code of its searches.
// Source: US Core, CodeSystem us-core-documentreference-category.
const DocumentCategory = "clinical-note"

const (
	categorySystem = "http://hl7.org/fhir/us/core/CodeSystem/us-core-documentreference-category"
	formatSystem   = "http://ihe.net/fhir/ihe.formatcode.fhir/CodeSystem/formatcode"
)

type (
	documentReference struct {
		ResourceType     string            `json:"resourceType"`
		ID               string            `json:"id,omitempty"`
		Meta             meta              `json:"meta"`
		MasterIdentifier identifier        `json:"masterIdentifier"`
		Identifier       []identifier      `json:"identifier"`
		Status           string            `json:"status"`
		DocStatus        string            `json:"docStatus"`
		Type             concept           `json:"type"`
		Category         []concept         `json:"category"`
		Subject          reference         `json:"subject"`
		Date             string            `json:"date"`
		Author           []reference       `json:"author,omitempty"`
		RelatesTo        []relatedDocument `json:"relatesTo,omitempty"`
		Description      string            `json:"description"`
		Content          []documentContent `json:"content"`
		Context          documentContext   `json:"context"`
	}
	relatedDocument struct {
		Code   string    `json:"code"`
		Target reference `json:"target"`
	}
	documentContent struct {
		Attachment attachment `json:"attachment"`
		Format     coding     `json:"format"`
	}
	attachment struct {
		ContentType string `json:"contentType"`
		Language    string `json:"language"`
		Data        []byte `json:"data"`
		Size        int    `json:"size"`
		Hash        string `json:"hash"`
		Title       string `json:"title"`
		Creation    string `json:"creation"`
	}
	documentContext struct {
		Period period `json:"period"`
	}
)

// AttachmentHash returns the SHA-1 of an attachment in base64. Source: FHIR R4, Attachment.hash.
func AttachmentHash(data []byte) string {
	sum := sha1.Sum(data) //nolint:gosec // prescribed
	return base64.StdEncoding.EncodeToString(sum[:])
}

// DeliveredDocument returns a document in the form sent to the EMR, about the patient with the EMR's id. Source: docs/decisions/fhir.md, "Documents".
func DeliveredDocument(d Document, externalID string) Resource {
	kind := coding{System: "http://loinc.org", Code: d.Type}
	if d.Type == DefaultDocumentType {
		kind.Display = "Personal health monitoring report Document"
	}
	r := &documentReference{
		ResourceType:     "DocumentReference",
		ID:               d.EMRID,
		Meta:             meta{Profile: []string{profilePrefix + "us-core-documentreference"}},
		MasterIdentifier: identifier{uuidSystem, "urn:uuid:" + d.VersionID},
		Identifier:       []identifier{{uuidSystem, "urn:uuid:" + d.ID}},
		Status:           "current",
		DocStatus:        "final",
		Type:             concept{Coding: []coding{kind}},
		Category:         []concept{{Coding: []coding{{categorySystem, DocumentCategory, "Clinical Note"}}}},
		Subject:          patientReference(externalID),
		Date:             validate.FormatInstant(d.MadeAt),
		Description:      d.Title,
		Content: []documentContent{{
			Attachment: attachment{
				ContentType: "application/pdf", Language: "en", Data: d.PDF, Size: len(d.PDF), Hash: AttachmentHash(d.PDF), Title: d.Title,
				Creation: validate.FormatInstant(d.MadeAt),
			},
			Format: coding{formatSystem, "urn:ihe:iti:xds:2017:mimeTypeSufficient", "mimeType Sufficient"},
		}},
		Context: documentContext{period{formatLocalTime(d.From, d.From.Location()), formatLocalTime(d.To.Add(-time.Second), d.To.Location())}},
	}
	if d.Author != "" {
		r.Author = []reference{{Display: d.Author}}
	}
	if d.Replaces != "" {
		r.RelatesTo = []relatedDocument{{"replaces", reference{Reference: "DocumentReference/" + d.Replaces}}}
	}
	return Resource{content: r}
}
