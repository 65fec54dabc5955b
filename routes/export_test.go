package routes

import (
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes/web"
)

// Exports for the external tests of this package.

// Row holds what the contract test compares.
type Row struct {
	Method, Path    string
	Public, Gateway bool
	Action          authz.Action
	Scope           authz.ClientScope
}

func Rows() []Row {
	var rows []Row
	a := new(api)
	for _, r := range append(a.bind(web.BasePath, table), a.bind("", rootTable)...) {
		rows = append(rows, Row{r.Method, r.Path, r.Permission == authz.Anyone, r.Permission == authz.SignedByGateway, r.Permission, r.Scope})
	}
	return rows
}
