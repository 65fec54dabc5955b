// Package sandbox is the practice in a box: the outside world that Vigil talks to, small enough to run on a
// laptop. It knows an EMR that really checks what it is sent, a device gateway with forgetful patients and
// faulty devices, and a mailbox that catches every mail. It refuses to know how Vigil works inside: each part
// speaks only the protocol its counterpart speaks, so that what passes here passes outside. Everything in it is
// made up, and nothing of it belongs in production.
package sandbox
