package sandbox

import (
	"fmt"
	"time"
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
	Phone, Email                           string
	Line1, City, State, Zip                string
	GatewayID, EMRID                       string
}

// NewDemoPatient returns the nth patient.
func NewDemoPatient(n int) DemoPatient {
	i := n - 1
	town := towns[i%len(towns)]
	first, last := givenNames[i%len(givenNames)], familyNames[i%len(familyNames)]
	born := time.Date(1938+(i*7)%45, time.Month(1+(i*5)%12), 1+(i*11)%28, 0, 0, 0, 0, time.UTC)
	return DemoPatient{
		FirstName: first, LastName: last, BirthDate: born.Format(time.DateOnly), Gender: genders[i%len(genders)],
		Phone: fmt.Sprintf("518-555-%04d", 100+n), Email: fmt.Sprintf("patient%d@mail.example", n),
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
