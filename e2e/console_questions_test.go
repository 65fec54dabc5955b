package e2e

import (
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A patient answers questionnaires on a phone, in both languages, and staff assign one and see the answers.
func TestConsoleQuestionnaires(t *testing.T) {
	browser, p := newConsole(t, 6)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	portal := p.signInWith(t, "patient@vigil.example", sandbox.Password)
	id := at(t, p.get(t, "/api/v1/patients/", portal).expect(t, 200), "results").([]any)[0].(object)["id"].(string)
	for _, questionnaire := range []string{"phq-2", "heart-failure-zone"} {
		p.post(t, "/api/v1/patients/"+id+"/questionnaires/", admin, object{"questionnaire": questionnaire, "every_days": 7}).expect(t, 201)
	}
	browser.run(t, p, "console_questions.mjs", object{"password": sandbox.Password, "patient": id}, &map[string]any{})
}
