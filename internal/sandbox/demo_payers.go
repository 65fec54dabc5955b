package sandbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
)

// price is the demo practice's charge for a code and its expected amount by Medicare's fee schedule, in cents.
type price struct {
	code             string
	charge, expected int64
}

var prices = []price{
	{"99453", 3200, 2171}, {"99454", 7800, 5211}, {"99445", 7800, 5211}, {"99457", 7500, 5177}, {"99470", 3900, 2605}, {"99458", 6000, 4141},
}

// insurer is a made-up payer; percent is its rate relative to the expected amount, and deviceDays the days with data of its first device code,
// 0 for the rule of the date.
type insurer struct {
	name, code, edi, filing string
	percent                 int64
	deviceDays              int
}

var demoInsurers = []insurer{
	{"Medicare Northeast", "MEDICARE", "14112", "MB", 100, 0},
	{"Harbor Mutual", "HARBOR", "60054", "CI", 112, 0},
	{"Green Mountain Health Plan", "GMHP", "87726", "BL", 94, 16},
}

// createPayers stores the practice's payers with their rates and returns their public numbers.
func createPayers(app core.App, now time.Time) (payers []int64, err error) {
	from := fmt.Sprintf("%d-01-01", now.Year())
	list := "cpt_code,locality,effective_date,charge,expected,source\n"
	for _, p := range prices {
		list += fmt.Sprintf("%s,,%s,%s,%s,Made up for the demo\n", p.code, from, billing.Cents(p.charge), billing.Cents(p.expected))
	}
	if _, err := billing.ImportFees(app, []byte(list), audit.System(), now); err != nil {
		return nil, fmt.Errorf("import the demo's fees: %w", err)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		for _, i := range demoInsurers {
			payer, _, err := collections.AddPayer(tx, collections.Payer{Name: i.name, Code: i.code, Active: true, EDI: i.edi, Filing: i.filing, DeviceDays: i.deviceDays}, now)
			if err != nil {
				return err
			}
			if err := auditCreated(tx, audit.ResourcePayer, i.code, now); err != nil {
				return err
			}
			for _, p := range prices {
				rate := collections.PayerRate{PayerID: payer.ID, CPTCode: p.code, RateCents: p.expected * i.percent / 100, EffectiveDate: from}
				if _, err := collections.AddPayerRate(tx, rate, now); err != nil {
					return err
				}
				if err := auditCreated(tx, audit.ResourcePayerRate, p.code+" "+from, now); err != nil {
					return err
				}
			}
			payers = append(payers, collections.Number(payer.ID))
		}
		return nil
	})
	return payers, err
}

func auditCreated(tx core.App, resourceType, resourceID string, now time.Time) error {
	return audit.Append(tx, audit.Entry{Event: audit.SettingsUpdate, Actor: audit.System(), ResourceType: resourceType, ResourceID: resourceID}, now)
}

// insuranceOf returns the insurance of the nth patient; every tenth has none and pays alone.
func insuranceOf(n int, payers []int64) (body validate.Field[patients.InsuranceBody]) {
	if n%10 == 0 || len(payers) == 0 {
		return body
	}
	var card patients.InsuranceBody
	card.PayerID = validate.Of(payers[n%len(payers)])
	card.MemberID = validate.Of(fmt.Sprintf("W%07d", 2_400_000+n*37))
	card.Relationship = validate.Of("self")
	return validate.Of(card)
}

// orderMonitoring records what a claim requires and the care team: the order, the plan, the visit before, and a nurse next to the provider.
// For every eighth patient no visit is recorded.
func orderMonitoring(app core.App, n int, patientID string, staff staff, at time.Time) error {
	kinds := []string{collections.OrderOfMonitoring, collections.PlanOfCare, collections.EstablishedVisit}
	if n%8 == 0 {
		kinds = kinds[:2]
	}
	by := actorOf(staff.provider)
	for _, kind := range kinds {
		checks := validate.NewChecks()
		order := patients.OrderBody{
			Kind: validate.Of(kind), Dated: validate.Of(at.AddDate(0, 0, -3).Format(time.DateOnly)), Text: validate.Of(treatmentPlans[kind]),
		}.Read(checks, at, time.UTC)
		if err := checks.Err(); err != nil {
			return err
		}
		if _, err := patients.RecordOrder(app, patientID, order, by, staff.provider.Id, at); err != nil {
			return fmt.Errorf("record %s: %w", strings.ReplaceAll(kind, "_", " "), err)
		}
	}
	checks := validate.NewChecks()
	team := patients.CareTeamBody{Members: validate.Of([]validate.Field[patients.MemberBody]{
		validate.Of(patients.MemberBody{UserID: validate.Of(staff.nurse.Number())}),
	})}.Read(checks)
	if err := checks.Err(); err != nil {
		return err
	}
	if _, err := patients.SetCareTeam(app, patientID, team, by, at); err != nil {
		return fmt.Errorf("set the care team: %w", err)
	}
	return nil
}

var treatmentPlans = map[string]string{
	collections.OrderOfMonitoring: "Remote monitoring of vital signs, daily, for twelve months.",
	collections.PlanOfCare:        "Measure every morning; call when a value is out of range; review monthly.",
	collections.EstablishedVisit:  "Office visit: history, examination, medication review.",
}

// actorOf returns a user as an actor of the audit trail.
func actorOf(user *collections.User) audit.Actor {
	return audit.User(user.Number(), user.Email(), user.Role(), audit.Origin{})
}
