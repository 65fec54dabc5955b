package fhirserver

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/questionnaires"
)

// questionnaireResponseType is the answers of patients to questionnaires.
var questionnaireResponseType = &ResourceType{
	Type: "QuestionnaireResponse", Action: authz.ReadQuestionnaireAnswers, Event: audit.PatientRead, AuditResource: audit.ResourceQuestionnaireResponse,
	Params: []Param{
		patientParam("patient", definitions+"QuestionnaireResponse-patient"),
		patientParam("subject", definitions+"QuestionnaireResponse-subject"),
		{Name: "questionnaire", Type: "reference", Definition: definitions + "QuestionnaireResponse-questionnaire", add: filterByQuestionnaire},
		timeParam("authored", definitions+"QuestionnaireResponse-authored", collections.ByCreated),
	},
	Orders:     slices.Concat(newestFirst("authored", collections.ByCreated), ascendingFirst("_id", collections.ByID)),
	ofPatients: true, table: collections.QuestionnaireResponseSearch, render: renderQuestionnaireResponses,
}

// filterByQuestionnaire restricts the search to questionnaires by id or by canonical URL, with or without a version.
func filterByQuestionnaire(s *Search, in *parseContext, v values) string {
	named := values{modifier: v.modifier}
	for _, text := range v.any {
		url, version, _ := strings.Cut(text, "|")
		id := strings.TrimPrefix(url, fhir.QuestionnaireURL(""))
		if version != "" && questionnaires.Find(id, version) == nil {
			continue // a version that does not exist matches nothing
		}
		named.any = append(named.any, id)
	}
	ids, ok := in.ids("Questionnaire", named)
	if !ok {
		return msgReference
	}
	s.addCondition(s.Type.table.AnyOf(collections.ByType, ids))
	return ""
}

func renderQuestionnaireResponses(_ *Engine, _ core.App, records []*core.Record, _ Reader) ([]Row, error) {
	rows := make([]Row, len(records))
	for i, record := range records {
		stored := collections.AsQuestionnaireResponse(record)
		rows[i] = Row{ID: stored.Id, PatientID: stored.PatientID()}
		if collections.Readable(record) != nil {
			rows[i].Unreadable = true
			continue
		}
		r, err := questionnaires.Read(stored)
		if err != nil {
			return nil, err
		}
		form := questionnaireForm(r.Questionnaire)
		rows[i].Resource = fhir.QuestionnaireResponse(fhir.QuestionnaireAnswers{
			ID: stored.Id, PatientID: stored.PatientID(), Form: form, Chosen: r.Answers, Score: r.Score, Result: resultCode(r.Questionnaire, r.Result),
			Source: stored.Source(), AuthoredAt: stored.AuthoredAt(),
		})
	}
	return rows, nil
}

// questionnaireForm converts a questionnaire. Items and options without a code of a public system have Vigil's own.
func questionnaireForm(q *questionnaires.Questionnaire) fhir.QuestionnaireForm {
	own := fhir.QuestionnaireURL(q.ID)
	form := fhir.QuestionnaireForm{
		ID: q.ID, Version: q.Version, Title: q.Code.Display, Copyright: q.Copyright, Code: fhir.Code(q.Code), Introduction: fhir.BilingualText(q.Introduction),
	}
	for _, item := range q.Items {
		one, system := fhir.QuestionnaireItem{ID: item.ID, Text: fhir.BilingualText(item.Text)}, own
		if item.System != "" {
			system, one.Code = item.System, &fhir.Code{System: item.System, Code: item.ID, Display: item.Text.English}
		}
		for _, o := range item.Options {
			one.Options = append(one.Options, fhir.QuestionnaireOption{
				Code: fhir.Code{System: system, Code: o.Value, Display: o.Text.English}, Text: fhir.BilingualText(o.Text), Score: o.Score,
			})
		}
		form.Items = append(form.Items, one)
	}
	if q.Total != nil {
		total := fhir.Code(*q.Total)
		form.Total = &total
	}
	for _, result := range q.Results {
		form.Results = append(form.Results, resultCode(q, result))
	}
	return form
}

func resultCode(q *questionnaires.Questionnaire, r questionnaires.Result) fhir.Code {
	return fhir.Code{System: fhir.QuestionnaireURL(q.ID), Code: r.ID, Display: strings.ToUpper(r.ID[:1]) + r.ID[1:]}
}

// questionnaireRows returns the current questionnaires with one of the ids and one of the URLs, as resources; nil does not restrict.
func questionnaireRows(ids, urls []string) (rows []Row) {
	for _, id := range questionnaires.IDs {
		if (ids == nil || slices.Contains(ids, id)) && (urls == nil || slices.Contains(urls, fhir.QuestionnaireURL(id))) {
			rows = append(rows, Row{ID: id, Resource: fhir.Questionnaire(questionnaireForm(questionnaires.Find(id, "")))})
		}
	}
	return rows
}
