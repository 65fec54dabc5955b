package audit

import "strconv"

// ActorType says what kind of party acted.
type ActorType string

// The actor types.
const (
	ByUser      ActorType = "user"
	BySuperuser ActorType = "superuser"
	BySystem    ActorType = "system"
	ByGateway   ActorType = "gateway"
	ByAnonymous ActorType = "anonymous"
)

// Origin is where a request came from; empty for what the clock does.
type Origin struct {
	Address   string // client address
	Client    string // user agent
	RequestID string
}

// Actor is who did something, and from where.
type Actor struct {
	Type            ActorType
	ID, Email, Role string
	From            Origin
}

// User is a signed-in person; id is the public one.
func User(id int64, email, role string, from Origin) Actor {
	return Actor{Type: ByUser, ID: strconv.FormatInt(id, 10), Email: email, Role: role, From: from}
}

// Superuser is an operator at the dashboard.
func Superuser(id, email string, from Origin) Actor {
	return Actor{Type: BySuperuser, ID: id, Email: email, From: from}
}

// System is the service itself: jobs, and rules that fire.
func System() Actor { return Actor{Type: BySystem} }

// Gateway is the device gateway.
func Gateway(from Origin) Actor { return Actor{Type: ByGateway, From: from} }

// Anonymous is somebody who has not signed in.
func Anonymous(from Origin) Actor { return Actor{Type: ByAnonymous, From: from} }
