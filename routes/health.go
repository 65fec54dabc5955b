package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/routes/web"
)

// live says that the process answers. Source: docs/decisions/dashboard.md, "Health body".
func (a *api) live(c *web.Call) error {
	return c.OK(struct {
		Status string `json:"status"`
	}{"ok"})
}

// healthView is the state of the four services.
type healthView struct {
	Status    dashboard.Health   `json:"status"`
	Timestamp string             `json:"timestamp"`
	Version   string             `json:"version"`
	Services  dashboard.Services `json:"services"`
}

// health answers from memory: 503 when the database is down, else 200. Source: docs/decisions/dashboard.md, "Health body".
func (a *api) health(c *web.Call) error {
	report := a.Monitor.Latest()
	status := http.StatusOK
	if report.Status == dashboard.Down {
		status = http.StatusServiceUnavailable
	}
	return c.JSON(status, healthView{report.Status, input.FormatInstant(report.At), a.Version, report.Services})
}
