package routes

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

type denialView struct {
	Code        string `json:"code"`
	Description string `json:"description"`
	Date        string `json:"date"`
	// Remarks are the remark codes of the whole decision, with adjustments at any level or none.
	Remarks  []string `json:"remarks"`
	NextStep string   `json:"next_step"`
	// RefileBy and AppealBy are the last days on which the payer takes a corrected claim and an appeal; null if they are not known.
	RefileBy *string `json:"refile_by"`
	AppealBy *string `json:"appeal_by"`
}

// payersOfDenials returns the payers by record id if an entry has a denial.
func payersOfDenials(app core.App, page []*collections.BillingEntry) (map[string]collections.Payer, error) {
	if !slices.ContainsFunc(page, func(entry *collections.BillingEntry) bool { return entry.DenialCode() != "" }) {
		return nil, nil
	}
	list, err := collections.ListPayers(app)
	payers := make(map[string]collections.Payer, len(list))
	for _, payer := range list {
		payers[payer.ID] = payer
	}
	return payers, err
}
