package sandbox

import (
	"testing"
	"time"
)

// Every demo patient gets one resource of each type, which names the patient and has an id of its own.
func TestDemoCharts(t *testing.T) {
	e, err := NewEMR(EMROptions{ClientID: "vigil", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	e.AddDemoCharts()
	e.AddDemoCharts() // replaces them
	if want := 6 * len(DemoEMRPatients()); len(e.chart) != want {
		t.Errorf("%d resources, want %d", len(e.chart), want)
	}
	if e.AddChart(resource{"resourceType": "Observation", "id": "o1"}) == nil || e.AddChart(resource{"resourceType": "Condition"}) == nil {
		t.Error("a resource of no chart was added")
	}
}
