package routes

import (
	"net/http"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// chartLinkRows are the endpoints of links that open a chart once.
func chartLinkRows() []route {
	return []route{
		{http.MethodPost, "/patients/{id}/links/", authz.ShareCharts, ratelimit.User, withPatient((*api).shareChart)},
		{http.MethodPost, "/chart-links/", authz.ShareCharts, ratelimit.Auth, withBody((*api).openSharedChart)},
	}
}

type chartLinkView struct {
	Code      string `json:"code"`
	ExpiresAt string `json:"expires_at"`
}

type sharedChartView struct {
	PatientID string `json:"patient_id"`
}

func (a *api) shareChart(c *web.Call, patient *collections.Patient) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	code, ends, err := auth.ShareChart(c.App, patient.Id, c.Actor(), c.Now)
	if err != nil {
		return err
	}
	return c.Created(chartLinkView{code, ends.UTC().Format(time.RFC3339)})
}

// openSharedChart answers 404 for a deleted patient and 403 for one outside the caller's care teams, as the chart would.
func (a *api) openSharedChart(c *web.Call, body auth.ChartLinkBody) error {
	id, err := auth.OpenSharedChart(c.App, body, func(id string) error {
		if _, err := collections.FindPatient(c.App, id); collections.IsNotFound(err) {
			return fault.Missing()
		} else if err != nil {
			return err
		}
		return a.authorizePatient(c, id)
	}, c.Now)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, id, id); err != nil {
		return err
	}
	return c.OK(sharedChartView{id})
}
