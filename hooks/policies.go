package hooks

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// policy is a set of rules for all records of a collection.
type policy uint8

const (
	// audited: writes are transactional, and those from the dashboard are audited.
	audited policy = 1 << iota
	// auditedByEngine: the engine of the collection audits every write.
	auditedByEngine
	// serviceOwned: only the service writes; a manual change would contradict the data that the records are derived from.
	serviceOwned
	// undeletable: records are never deleted, because the law requires them or they document what happened.
	undeletable
	// fullyReadable: a record can be changed only if all sealed values open. In other collections the service's own updates, such as a device's last
	// event, must continue; the dashboard checks all collections.
	fullyReadable
)

// policies has the rules of each collection that has any.
var policies = map[string]policy{
	collections.Alerts:                   audited | auditedByEngine | undeletable | fullyReadable,
	collections.AuditLog:                 undeletable,
	collections.BillingEntries:           audited | serviceOwned | undeletable | fullyReadable,
	collections.CareTeamMembers:          audited,
	collections.Caregivers:               audited | serviceOwned | undeletable,
	collections.ClaimBatches:             audited | serviceOwned | undeletable,
	collections.ClaimLines:               audited | serviceOwned | undeletable,
	collections.ClaimResponses:           audited | serviceOwned | undeletable,
	collections.Clients:                  audited | serviceOwned,
	core.CollectionNameSuperusers:        audited,
	collections.Consents:                 audited | undeletable | fullyReadable,
	collections.DeviceAssignments:        audited | undeletable,
	collections.DeviceOrders:             audited,
	collections.Devices:                  audited,
	collections.EMRContexts:              audited | serviceOwned,
	collections.EMRProposals:             audited | serviceOwned,
	collections.Epochs:                   serviceOwned | undeletable,
	collections.EscalationEvents:         audited | serviceOwned | undeletable,
	collections.Escalations:              audited | auditedByEngine | undeletable | fullyReadable,
	collections.EventPositions:           serviceOwned | undeletable,
	collections.FeeSchedule:              audited,
	collections.GatewayEvents:            audited | undeletable,
	collections.Hubs:                     audited,
	collections.ICD10Codes:               audited,
	collections.Messages:                 audited | serviceOwned | undeletable,
	collections.NoteTemplates:            audited,
	collections.Observations:             audited | auditedByEngine | undeletable,
	collections.OnCallRota:               audited | serviceOwned | undeletable,
	collections.Orders:                   audited | undeletable,
	collections.Passkeys:                 audited | serviceOwned,
	collections.Patients:                 audited | auditedByEngine | undeletable | fullyReadable,
	collections.PayerRates:               audited,
	collections.Payers:                   audited,
	collections.Payments:                 audited | serviceOwned | undeletable,
	collections.QuestionnaireAssignments: audited | serviceOwned | undeletable,
	collections.QuestionnaireResponses:   audited | serviceOwned | undeletable,
	collections.Remittances:              audited | serviceOwned | undeletable,
	collections.Snoozes:                  audited | serviceOwned | undeletable,
	collections.ThresholdChanges:         audited | serviceOwned | undeletable,
	collections.ThresholdTemplates:       audited,
	collections.Thresholds:               audited | auditedByEngine,
	collections.TimeEntries:              audited | serviceOwned | undeletable | fullyReadable,
	collections.TransmissionAttempts:     undeletable,
	collections.Transmissions:            audited | undeletable,
	collections.TriageScores:             audited | serviceOwned | undeletable,
	collections.Users:                    audited | undeletable | fullyReadable,
	collections.WebhookDeliveries:        audited | serviceOwned,
	collections.Webhooks:                 audited | serviceOwned,
}

// collectionsWith returns the collections that have a rule.
func collectionsWith(rule policy) (names []string) {
	for name, rules := range policies {
		if rules&rule != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
