package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
)

var (
	givenNames = []string{
		"Grace", "James", "Olivia", "Robert", "Elena", "William", "Aisha", "Thomas", "Hannah", "Luis",
		"Margaret", "Samuel", "Chloe", "Henry", "Yuki", "Walter", "Beatriz", "George", "Ingrid", "Kwame",
	}
	familyNames = []string{
		"Hall", "Nguyen", "Fischer", "Johnson", "Petrov", "O’Neill", "Haddad", "Brooks", "Moreau", "Silva", "Tanaka", "Carter",
		"Novak", "Reyes", "Andersen", "Mbeki", "Costa", "Walsh", "Kim",
	}
	genders = []string{"female", "male", "female", "male", "female", "male", "female", "male", "female", "male"}
	towns   = []struct{ city, state, zip string }{{"Albany", "NY", "12207"}, {"Burlington", "VT", "05401"}, {"Hartford", "CT", "06103"}, {"Concord", "NH", "03301"}}
)

// DemoPatient is the nth made-up patient, counted from 1: the same number is always the same person.
type DemoPatient struct {
	FirstName, LastName, BirthDate, Gender string
	Phone, Email, Language                 string
	Line1, City, State, Zip                string
	GatewayID, EMRID                       string
}

// NewDemoPatient returns the nth patient.
func NewDemoPatient(n int) DemoPatient {
	i := n - 1
	town := towns[i%len(towns)]
	first, last := givenNames[i%len(givenNames)], familyNames[i%len(familyNames)]
	born := time.Date(1938+(i*7)%45, time.Month(1+(i*5)%12), 1+(i*11)%28, 0, 0, 0, 0, time.UTC)
	language := "en"
	if slices.Contains([]string{"Elena", "Luis", "Beatriz"}, first) {
		language = "es"
	}
	return DemoPatient{
		FirstName: first, LastName: last, BirthDate: born.Format(time.DateOnly), Gender: genders[i%len(genders)],
		Phone: fmt.Sprintf("518-555-%04d", 100+n), Email: fmt.Sprintf("patient%d@mail.example", n), Language: language,
		Line1: fmt.Sprintf("%d Maple Street", 10+n), City: town.city, State: town.state, Zip: town.zip,
		GatewayID: GatewayPatientID(n), EMRID: fmt.Sprintf("demo-%04d", n),
	}
}

// EMRPatient returns the patient's record in the EMR sandbox.
func (p DemoPatient) EMRPatient() EMRPatient {
	return EMRPatient{
		ID: p.EMRID, MRN: "EMR-" + p.EMRID, Family: p.LastName, Given: []string{p.FirstName}, Gender: p.Gender, BirthDate: p.BirthDate,
		Phone: p.Phone, Email: p.Email, Line: []string{p.Line1}, City: p.City, State: p.State, PostalCode: p.Zip,
	}
}

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

func (u DemoUser) account() auth.NewAccount {
	account := auth.NewAccount{Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Role: u.Role, Password: Password}
	if u.Role == authz.Provider {
		account.NPI, account.Taxonomy = "1245319599", "207R00000X" // internal medicine
	}
	return account
}
