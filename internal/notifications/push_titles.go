package notifications

import (
	"cmp"
	"slices"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// subjects states what an alert is about that does not come from a bound; the others are named by [vitals.AbnormalText].
var subjects = map[string]string{
	"implausible_reading": "implausible reading",
	"suspect_reading":     "reading to confirm",
	"device_clock":        "device clock is wrong",
	"irregular_heartbeat": "irregular heartbeat",
	"early_warning":       "early warning score",
	"missed_reading":      "missed readings",
	"no_reading_24h":      "no readings for a day",
	"device_battery":      "device battery is low",
	"hub_offline":         "hub is offline",
	"stale_reading":       "repeated identical readings",
	"device_info":         "message of a device",
}

const (
	unknownReading = "abnormal reading"
	unknownDevice  = "device needs attention"
)

// levelWords begin the titles about alerts by severity, and priorityWords those about escalations by priority.
var (
	levelWords    = map[string]string{"critical": "Critical", "warning": "Warning", "info": "Notice", "success": "Notice"}
	priorityWords = map[string]string{"stat": "Stat escalation", "urgent": "Urgent escalation", "routine": "Routine escalation"}
	// prioritiesBySeverity is used where the escalation cannot be read.
	prioritiesBySeverity = map[string]string{"critical": "stat", "warning": "urgent", "info": "routine"}
)

const openedForPatient = "new"

// pushTitle returns the title of a push: level and kind, without a name or a value. Source: docs/decisions/notifications.md, "Push text".
func pushTitle(n collections.UnplannedNotification) string {
	subject := vitals.AbnormalText(n.AlertType, n.Value, n.Threshold)
	if subject == "" {
		subject = subjects[n.AlertType]
	}
	switch {
	case n.Type == thresholdCritical || n.Type == thresholdWarning:
		return levelTitle(n.Severity, cmp.Or(subject, unknownReading))
	case n.Type == deviceNotice:
		return levelTitle(n.Severity, cmp.Or(subject, unknownDevice))
	case n.Type == escalationOpened:
		return escalationTitle(n, cmp.Or(subject, openedForPatient))
	case types[n.Type].step != "":
		return escalationTitle(n, types[n.Type].step)
	}
	return cmp.Or(types[n.Type].title, genericTexts[n.Channel][0])
}

func levelTitle(severity, subject string) string {
	return cmp.Or(levelWords[severity], "Notice") + ": " + subject
}

func escalationTitle(n collections.UnplannedNotification, step string) string {
	word := priorityWords[n.Priority]
	return cmp.Or(word, priorityWords[cmp.Or(prioritiesBySeverity[n.Severity], "routine")]) + ": " + step
}

// pushTitles are all titles that a push may have, so that no text written elsewhere becomes one.
var pushTitles = allTitles()

func allTitles() (titles []string) {
	about := []string{unknownReading, unknownDevice, openedForPatient}
	for _, subject := range subjects {
		about = append(about, subject)
	}
	for _, p := range vitals.Parameters {
		for _, text := range []string{p.Abnormal, p.AbnormalHigh} {
			if text != "" && !slices.Contains(about, text) {
				about = append(about, text)
			}
		}
	}
	for _, word := range levelWords {
		for _, subject := range about {
			titles = append(titles, word+": "+subject)
		}
	}
	for _, t := range types {
		about, titles = append(about, t.step), append(titles, t.title, t.spanish[0])
	}
	for _, word := range priorityWords {
		for _, step := range about {
			if step != "" {
				titles = append(titles, word+": "+step)
			}
		}
	}
	for _, generic := range genericTexts {
		titles = append(titles, generic[0])
	}
	slices.Sort(titles)
	return slices.DeleteFunc(slices.Compact(titles), func(title string) bool { return title == "" })
}
