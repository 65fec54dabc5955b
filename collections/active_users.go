package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Tie is what somebody has to do with a patient or an escalation.
type Tie string

// The ties, as conditions on a user.
const (
	OnTeamOf Tie = `(id IN (SELECT user FROM care_team_members WHERE patient = {:to})
		OR id = (SELECT primary_provider FROM patients WHERE id = {:to}))`
	PrimaryProviderOf Tie = `id = (SELECT primary_provider FROM patients WHERE id = {:to})`
	AssigneeOf        Tie = `email = (SELECT assigned_to FROM escalations WHERE id = {:to}) AND email != ''`
	PortalOf          Tie = `patient = {:to}`
)

// ActiveUsers are those with one of the roles whose account may be used, in the order of their numbers; a tie narrows them.
func ActiveUsers(app core.App, roles []string, tie Tie, to string) ([]string, error) {
	where := Conditions{oneOf("role", roles)}
	if tie != "" {
		where = append(where, dbx.NewExp(string(tie), dbx.Params{"to": to}))
	}
	return activeUsers(app, where)
}

// ActiveUser is the user, if the account may be used.
func ActiveUser(app core.App, id string) ([]string, error) {
	return activeUsers(app, Conditions{dbx.HashExp{"id": id}})
}

func activeUsers(app core.App, where Conditions) (ids []string, err error) {
	err = app.DB().Select("id").From(Users).Where(Every(where.And("is_active = TRUE"))).OrderBy("id").Column(&ids)
	return ids, wrap(err, "find people")
}
