package config_test

import (
	"fmt"

	"github.com/vigilhealth/vigil/internal/config"
)

// ExampleLoad shows that Load reports every problem at once, by name and without the value.
func ExampleLoad() {
	_, err := config.Load([]string{"VIGIL_LOG_LEVEL=chatty", "VIGIL_SETTINGS_KEY=hunter2", "VIGIL_RATE_LIMIT_AUTH=lots"})
	fmt.Println(err)
	// Output:
	// VIGIL_RATE_LIMIT_AUTH: must be requests per time such as 1000/1h, or 0 for no limit
	// VIGIL_LOG_LEVEL: must be debug or info or warn or error
	// VIGIL_SETTINGS_KEY: must be exactly 32 characters
}
