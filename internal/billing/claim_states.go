package billing

// The states of a claim, and how the API shows them. Source: docs/decisions/billing.md, "Two billing vocabularies".
const (
	PendingReview = "pending_review"
	Reviewed      = "reviewed"
	Submitted     = "submitted"
	Paid          = "paid"
	Denied        = "denied"
	Appealed      = "appealed"
	Voided        = "voided"
	VoidRequested = "void_requested" // submitted; a void is requested or will be
	RefundDue     = "refund_due"     // paid, though the facts do not support it
	Refunded      = "refunded"

	pending = "pending"
)

// States are the internal states, in the order of a claim's life cycle.
var States = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, VoidRequested, RefundDue, Refunded, Voided}

// ContractStates are the states named in the API contract; reports list the others only when a claim has them.
var ContractStates = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, Voided}

// StatusFilterValues are the values of the status filter, from both vocabularies.
var StatusFilterValues = append([]string{pending}, States...)

// APIStatus returns the API's name for a state.
func APIStatus(state string) string {
	if state == PendingReview || state == Reviewed {
		return pending
	}
	return state
}

// StatesForFilter returns the states that a filter value stands for; every state except voided for "".
func StatesForFilter(word string) []string {
	switch word {
	case "":
		return States[:len(States)-1]
	case pending:
		return []string{PendingReview, Reviewed}
	}
	return []string{word}
}

// IsUndone reports whether an entry no longer counts: voided, or refunded in full. The engine does not bill the same service again; a user may.
func IsUndone(state string) bool { return state == Voided || state == Refunded }
