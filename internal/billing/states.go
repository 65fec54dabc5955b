package billing

// The states of a claim, and how the contract shows them. Source: docs/decisions/billing.md, "Two billing vocabularies".
const (
	PendingReview = "pending_review"
	Reviewed      = "reviewed"
	Submitted     = "submitted"
	Paid          = "paid"
	Denied        = "denied"
	Appealed      = "appealed"
	Voided        = "voided"

	pending = "pending"
)

// States are the internal states, in the order of a claim's life.
var States = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, Voided}

// StatusWords are what the filter by status accepts: both vocabularies.
var StatusWords = append([]string{pending}, States...)

// APIStatus is how the contract shows a state.
func APIStatus(state string) string {
	if state == PendingReview || state == Reviewed {
		return pending
	}
	return state
}

// StatesOf are the states a word of either vocabulary means; all that are not voided for "".
func StatesOf(word string) []string {
	switch word {
	case "":
		return States[:len(States)-1]
	case pending:
		return []string{PendingReview, Reviewed}
	}
	return []string{word}
}

// The warnings of entries.
const (
	AttestInteraction = "attest_interaction"
	PossibleDuplicate = "possible_duplicate"
	BeforeEnrolment   = "before_enrolment"
	MissingPrimary    = "missing_primary_code"
	Overlaps99457     = "overlaps_99457"
	UnknownICD10      = "unknown_icd10"
)
