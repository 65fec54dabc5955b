package auth

import "github.com/vigilhealth/vigil/internal/access"

// Caller is who makes a request, as the database knew them when the request came in.
type Caller struct {
	RecordID  string      // native record id
	ID        int64       // public id
	Email     string      // sign-in address
	Role      access.Role // never taken from the token
	PatientID string      // linked patient of a portal user, else ""
	Family    string      // the sign-in the access token came from; "" when it names none
	// TwoFactor reports whether signing in takes a second factor; NeedsTwoFactor, that the role must have one and the caller has not.
	TwoFactor, NeedsTwoFactor bool
}
