package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// StaffNames are what people are called, by e-mail address; addresses that nobody has are left out.
func StaffNames(app core.App, emails []string) (map[string]phi.Text, error) {
	rows, err := queryAll[struct {
		ID    string `db:"id"`
		Email string `db:"email"`
		First string `db:"first_name"`
		Last  string `db:"last_name"`
	}](app, "read names of staff", `SELECT id, email, first_name, last_name FROM users
		WHERE email != '' AND email IN (SELECT value FROM json_each({:emails}))`, dbx.Params{"emails": jsonList(emails)})
	names := make(map[string]phi.Text, len(rows))
	for _, row := range rows {
		first, last, broken := openNames(Users, row.ID, row.First, row.Last)
		if broken {
			continue // the address is shown instead
		}
		names[row.Email] = first + " " + last
	}
	return names, err
}
