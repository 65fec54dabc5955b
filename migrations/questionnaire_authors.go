package migrations

import (
	"fmt"

	"github.com/pocketbase/pocketbase/core"
)

func init() { register("1796110000_questionnaire_authors.go", nameQuestionnaireAuthors) }

// nameQuestionnaireAuthors replaces the address of who answered a questionnaire by the account's id: an address beside health information
// would be in clear.
func nameQuestionnaireAuthors(app core.App) error {
	if err := changeCollection(app, "questionnaire_responses", []string{
		`{"name": "author", "type": "text", "id": "text1795971027", "help": "Id of the account.", "max": 15}`,
	}); err != nil {
		return fmt.Errorf("change the author of answers: %w", err)
	}
	_, err := app.DB().NewQuery(`UPDATE questionnaire_responses SET author = COALESCE((SELECT u.id FROM users u WHERE u.email = author), '') WHERE author != ''`).Execute()
	if err != nil {
		return fmt.Errorf("convert the authors of answers: %w", err)
	}
	return nil
}
