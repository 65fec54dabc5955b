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
	VoidRequested = "void_requested" // submitted, and the payer has been or will be asked to void it
	RefundDue     = "refund_due"     // paid for what does not hold
	Refunded      = "refunded"

	pending = "pending"
)

// States are the internal states, in the order of a claim's life.
var States = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, VoidRequested, RefundDue, Refunded, Voided}

// ContractStates are those that the contract names; reports show the others where there are such.
var ContractStates = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, Voided}

// StatusFilterValues are what the filter by status accepts: both vocabularies.
var StatusFilterValues = append([]string{pending}, States...)

// APIStatus is how the contract shows a state.
func APIStatus(state string) string {
	if state == PendingReview || state == Reviewed {
		return pending
	}
	return state
}

// StatesForFilter are the states a word of either vocabulary means; all that are not voided for "".
func StatesForFilter(word string) []string {
	switch word {
	case "":
		return States[:len(States)-1]
	case pending:
		return []string{PendingReview, Reviewed}
	}
	return []string{word}
}

// IsUndone reports whether a state is that of an entry which counts no more: voided, or all of it paid back. The engine does not bill the same again by
// itself; a person may.
func IsUndone(state string) bool { return state == Voided || state == Refunded }
