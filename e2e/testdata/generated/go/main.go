// Command go calls Vigil with a Go client generated from its contract: go run . URL CLIENT_ID CLIENT_SECRET.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"time"

	"vigil.example/generated/vigil"
)

func main() {
	ctx, url, basic := context.Background(), os.Args[1], "Basic "+base64.StdEncoding.EncodeToString([]byte(os.Args[2]+":"+os.Args[3]))
	anonymous := must(vigil.NewClientWithResponses(url))
	token := must(anonymous.SignInClientWithFormdataBodyWithResponse(ctx, &vigil.SignInClientParams{Authorization: &basic},
		vigil.ClientTokenRequest{GrantType: vigil.ClientTokenRequestGrantTypeClientCredentials})).JSON200
	client := must(vigil.NewClientWithResponses(url, vigil.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token.AccessToken)
		return nil
	})))

	var patients []vigil.Patient
	for page, size := 1, 2; ; page++ {
		list := must(client.ListPatientsWithResponse(ctx, &vigil.ListPatientsParams{PageNumber: &page, PageSize: &size})).JSON200
		if patients = append(patients, list.Results...); list.Next == nil {
			fmt.Println("patients:", len(patients), list.Count)
			break
		}
	}
	ada := patients[0]
	for _, patient := range patients {
		if patient.FirstName != nil && *patient.FirstName == "Ada" {
			ada = patient
		}
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	once := "8e03978e-40d5-43e8-bc93-6894a57f9324"
	reading := must(client.PostBloodPressureWithResponse(ctx, &vigil.PostBloodPressureParams{IdempotencyKey: &once},
		vigil.BloodPressureBody{PatientId: &ada.Id, Systolic: 191, Diastolic: 84, MeasuredAt: now})).JSON201
	fmt.Println("reading:", *reading.Systolic, *reading.Origin, reading.MeasuredAt.Equal(now))
	alerts := must(client.ListAlertsWithResponse(ctx, &vigil.ListAlertsParams{PatientId: &ada.Id})).JSON200
	for _, alert := range alerts.Results {
		if alert.ObservationId != nil && *alert.ObservationId == reading.Id {
			fmt.Println("alert:", alert.Level)
		}
	}
	fmt.Println("fhir:", must(client.ReadFHIRObservationWithResponse(ctx, reading.Id)).JSON200.Status)
	entry := must(client.ListBillingEntriesWithResponse(ctx, nil)).JSON200.Results[0]
	fmt.Println("billing:", entry.Amount, must(client.ReadBillingEntryWithResponse(ctx, entry.Id)).JSON200.History[0].Action)
	far := 99
	fmt.Println("refused:", must(client.ListPatientsWithResponse(ctx, &vigil.ListPatientsParams{PageNumber: &far})).JSON404.Code)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
