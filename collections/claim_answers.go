package collections

import "github.com/pocketbase/pocketbase/core"

// BatchAnswers are the lines of a batch by what came of them until now, each in one number: sent back by clearinghouse or payer and not sent
// since, paid, denied, taken back, left again in a later batch, and all others. Lines that stand on a replacement only because they stood on the
// claim before are in none.
type BatchAnswers struct {
	Batch     string `db:"batch"`
	SentBack  int    `db:"sent_back"`
	Paid      int    `db:"paid"`
	Denied    int    `db:"denied"`
	Voided    int    `db:"voided"`
	SentAgain int    `db:"sent_again"`
	Open      int    `db:"open"`
}

// AnswersOfBatches are the answers to some batches, by batch.
func AnswersOfBatches(app core.App, ids []string) (map[string]BatchAnswers, error) {
	rows, err := queryAll[BatchAnswers](app, "count answers to claims", `SELECT batch, SUM(came = 'sent_back') AS sent_back, SUM(came = 'paid') AS paid,
			SUM(came = 'denied') AS denied, SUM(came = 'voided') AS voided, SUM(came = 'sent_again') AS sent_again, SUM(came = 'open') AS open
		FROM (SELECT l.batch, CASE
				WHEN e.claim_control_number != l.claim_control_number THEN 'sent_again'
				WHEN e.rejection LIKE '{%' THEN 'sent_back'
				WHEN e.lifecycle_status IN ('paid', 'refund_due', 'refunded') THEN 'paid'
				WHEN e.lifecycle_status IN ('denied', 'appealed') THEN 'denied'
				WHEN e.lifecycle_status = 'voided' THEN 'voided'
				ELSE 'open' END AS came
			FROM claim_lines l JOIN billing_entries e ON e.id = l.billing_entry WHERE l.carried = FALSE AND l.batch`+those+`) GROUP BY batch`, idsOf(ids))
	if err != nil {
		return nil, err
	}
	answers := make(map[string]BatchAnswers, len(rows))
	for _, row := range rows {
		answers[row.Batch] = row
	}
	return answers, nil
}
