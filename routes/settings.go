package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// settingRows are the endpoints of the service's settings.
func settingRows() []route {
	return []route{{http.MethodGet, "/settings/", authz.ReadSettings, ratelimit.User, (*api).listSettings}}
}

type settingView struct {
	Name    string  `json:"name"`
	Value   *string `json:"value"` // null for a secret
	Default string  `json:"default"`
	Source  string  `json:"source"`
	Secret  bool    `json:"secret"`
	Meaning string  `json:"meaning"`
}

func viewSetting(s config.Setting) settingView {
	view := settingView{Name: s.Name, Value: &s.Value, Default: s.Default, Source: s.Source, Secret: s.Secret, Meaning: s.Meaning}
	if s.Secret {
		view.Value = nil
	}
	return view
}

func (a *api) listSettings(c *web.Call) error {
	q := c.Query()
	page := q.Paging()
	if !q.Has("page_size") {
		page.Size = max(page.Size, len(a.Settings)) // the first page shows all of them
	}
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondPage(c, page, len(a.Settings), web.Map(web.Cut(page, a.Settings), viewSetting), 0)
}
