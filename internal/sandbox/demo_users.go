package sandbox

import (
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
)

// Password is the password of every demo account. They exist only on the machine of a user who tries Vigil.
const Password = "Vigil-Demo-2026!"

// DemoUser is a made-up user.
type DemoUser struct {
	Role                       authz.Role
	Email, FirstName, LastName string
}

// DemoUsers has one user for each role, in the contract's order.
var DemoUsers = []DemoUser{
	{authz.Admin, "admin@vigil.example", "Alex", "Morgan"},
	{authz.ClinicalManager, "manager@vigil.example", "Maria", "Lindqvist"},
	{authz.Provider, "provider@vigil.example", "Priya", "Raman"},
	{authz.Nurse, "nurse@vigil.example", "Noah", "Okafor"},
	{authz.MA, "ma@vigil.example", "Mina", "Castillo"},
	{authz.DataMonitor, "billing@vigil.example", "Dana", "Whitfield"},
	{authz.Patient, "patient@vigil.example", "Grace", "Hall"},
}

func (c DemoUser) account() auth.NewAccount {
	account := auth.NewAccount{Email: c.Email, FirstName: c.FirstName, LastName: c.LastName, Role: c.Role, Password: Password}
	if c.Role == authz.Provider {
		account.NPI, account.Taxonomy = "1245319599", "207R00000X" // internal medicine
	}
	return account
}
