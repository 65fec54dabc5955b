// Package messaging sends texts and calls to patients: whether and when one may be sent, its text, and its delivery through a provider. Nothing
// is sent without the patient's consent, and an automatic message is sent at most once. What patients answer is in internal/messaging/replies.
// The rules are in docs/decisions/messages.md.
package messaging
