package sandbox

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/access"
)

// Password is that of every made-up account. They only ever exist on a machine of somebody who tries Vigil out.
const Password = "Vigil-Demo-2026!"

// Colleague is a made-up person with an account.
type Colleague struct {
	Role                       access.Role
	Email, FirstName, LastName string
}

// Colleagues is one person for each role, in the contract's order.
var Colleagues = []Colleague{
	{access.Admin, "admin@vigil.example", "Alex", "Morgan"},
	{access.ClinicalManager, "manager@vigil.example", "Maria", "Lindqvist"},
	{access.Provider, "provider@vigil.example", "Priya", "Raman"},
	{access.Nurse, "nurse@vigil.example", "Noah", "Okafor"},
	{access.MA, "ma@vigil.example", "Mina", "Castillo"},
	{access.DataMonitor, "billing@vigil.example", "Dana", "Whitfield"},
	{access.Patient, "patient@vigil.example", "Grace", "Hall"},
}

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

// Neighbour is the nth made-up patient, counted from 1: the same number is always the same person.
type Neighbour struct {
	FirstName, LastName, BirthDate, Gender string
	Phone, Email                           string
	Line1, City, State, Zip                string
	GatewayID, EMRID                       string
}

// NewNeighbour makes the nth patient.
func NewNeighbour(n int) Neighbour {
	i := n - 1
	town := towns[i%len(towns)]
	first, last := givenNames[i%len(givenNames)], familyNames[i%len(familyNames)]
	born := time.Date(1938+(i*7)%45, time.Month(1+(i*5)%12), 1+(i*11)%28, 0, 0, 0, 0, time.UTC)
	return Neighbour{
		FirstName: first, LastName: last, BirthDate: born.Format(time.DateOnly), Gender: genders[i%len(genders)],
		Phone: fmt.Sprintf("518-555-%04d", 100+n), Email: fmt.Sprintf("patient%d@mail.example", n),
		Line1: fmt.Sprintf("%d Maple Street", 10+n), City: town.city, State: town.state, Zip: town.zip,
		GatewayID: GatewayPatientID(n), EMRID: fmt.Sprintf("demo-%04d", n),
	}
}

// EMRPatient is the neighbour as the EMR sandbox knows them.
func (p Neighbour) EMRPatient() EMRPatient {
	return EMRPatient{
		ID: p.EMRID, MRN: "EMR-" + p.EMRID, Family: p.LastName, Given: []string{p.FirstName}, Gender: p.Gender, BirthDate: p.BirthDate,
		Phone: p.Phone, Email: p.Email, Line: []string{p.Line1}, City: p.City, State: p.State, PostalCode: p.Zip,
	}
}
