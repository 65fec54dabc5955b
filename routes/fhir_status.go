package routes

import (
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/routes/web"
)

// From these on deliveries count as degraded. Source: docs/decisions/transmissions.md, "FHIR status".
const (
	leastSuccessRate  = 95.0
	mostAwaitingRetry = 20
)

type fhirStatusView struct {
	Status                 string        `json:"status"`
	EMRConnection          string        `json:"emr_connection"`
	LastSuccessfulTransmit *string       `json:"emr_last_successful_transmission"`
	Queue                  fhirQueueView `json:"queue"`
	TodayStats             fhirTodayView `json:"today_stats"`
	Uptime                 string        `json:"uptime"`
	UptimeSeconds          int64         `json:"uptime_seconds"`
}

type fhirQueueView struct {
	Pending             int `json:"pending"`
	Processing          int `json:"processing"`
	FailedAwaitingRetry int `json:"failed_awaiting_retry"`
}

type fhirTodayView struct {
	Transmitted int     `json:"transmitted"`
	Failed      int     `json:"failed"`
	SuccessRate float64 `json:"success_rate"`
}

// fhirStatus says how deliveries to the EMR go. Today begins at midnight in the practice's zone.
func (a *api) fhirStatus(c *web.Call) error {
	f, err := transmissions.ReadFigures(c.App, collections.StartOfDay(c.Now.In(a.Zone)))
	if err != nil {
		return err
	}
	uptime, err := dashboard.Uptime(c.App, c.Now)
	if err != nil {
		return err
	}
	connection, since := a.emrConnection(), a.Transmissions.RunningSince()
	view := fhirStatusView{
		Status: fhirHealth(f, connection, !since.IsZero()), EMRConnection: connection, LastSuccessfulTransmit: instantOrNull(f.LastTransmitted),
		Queue:      fhirQueueView{f.Pending, f.Processing, f.AwaitingRetry},
		TodayStats: fhirTodayView{f.Transmitted, f.Failed, f.SuccessRate()},
		Uptime:     fmt.Sprintf("%.1f%%", uptime),
	}
	if !since.IsZero() {
		view.UptimeSeconds = max(0, int64(c.Now.Sub(since)/time.Second))
	}
	return c.OK(view)
}

// emrConnection is what the health check last saw of the EMR.
func (a *api) emrConnection() string {
	switch {
	case !a.Transmissions.EMR.Configured():
		return "not_configured"
	case a.Monitor.Latest().Services.EMR.Status == dashboard.Down:
		return "disconnected"
	}
	return "connected"
}

// fhirHealth sums up. An EMR that nobody configured does not count against the service.
func fhirHealth(f transmissions.Figures, connection string, working bool) string {
	switch {
	case connection == "disconnected" || !working:
		return "down"
	case f.SuccessRate() < leastSuccessRate || f.AwaitingRetry > mostAwaitingRetry:
		return "degraded"
	}
	return "operational"
}
