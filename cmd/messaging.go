package cmd

import (
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/messaging"
)

// newMessages returns the worker that sends messages to patients; nil if none are sent.
func (s *Service) newMessages() *messaging.Worker {
	m := s.settings.Messaging
	if !m.Configured() {
		return nil
	}
	client := egress.New(egress.Options{Timeout: 30 * time.Second, DevHosts: s.settings.Outbound.DevAllowedHosts})
	var provider messaging.Provider = &messaging.File{Path: m.URL, From: m.From}
	switch m.Provider {
	case "twilio":
		provider = messaging.Twilio{Base: m.URL, Account: m.Account, Secret: m.Secret.Reveal(), From: m.From, PublicURL: s.settings.PublicURL, Client: client}
	case "http":
		provider = messaging.SignedJSON{URL: m.URL, Secret: m.Secret.Reveal(), From: m.From, Client: client}
	}
	hours, err := messaging.ParseHours(m.Hours)
	if err != nil {
		hours = messaging.Hours{From: "08:00", Until: "21:00"} // unreachable: the settings are validated
	}
	messaging.Enable(s.app, messaging.Practice{Name: s.settings.Practice.Name, Hours: hours})
	return messaging.NewWorker(messaging.WorkerOptions{Provider: provider, IsOver: s.reminders().IsOver, Clock: s.now, Log: s.log})
}

// reminders returns what queues automatic messages.
func (s *Service) reminders() messaging.Reminders {
	return messaging.Reminders{Devices: s.devices, At: s.settings.Messaging.ReminderAt, Zone: s.settings.PracticeLocation}
}
