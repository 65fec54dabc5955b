package fhir

import (
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// QuestionnaireForm holds the fields of a Questionnaire.
type QuestionnaireForm struct {
	ID, Version      string // the version is a date, YYYY-MM-DD
	Title, Copyright string
	Code             Code
	Introduction     BilingualText
	Items            []QuestionnaireItem
	Total            *Code // the item with the sum of scores; nil for none
	Results          []Code
}

// Code is a code of a system.
type Code struct{ System, Code, Display string }

// BilingualText is a text in English with its Spanish translation.
type BilingualText struct{ English, Spanish string }

// QuestionnaireItem is a question with its options.
type QuestionnaireItem struct {
	ID      string
	Code    *Code // nil for a question without a code of a public system
	Text    BilingualText
	Options []QuestionnaireOption
}

// QuestionnaireOption is an option of an item.
type QuestionnaireOption struct {
	Code  Code
	Text  BilingualText
	Score int
}

// QuestionnaireAnswers holds the fields of a QuestionnaireResponse.
type QuestionnaireAnswers struct {
	ID, PatientID string
	Form          QuestionnaireForm
	Chosen        map[string]string // the code of the option by item
	Score         int
	Result        Code
	// Source is patient, caregiver or staff; staff record answers given by phone.
	Source     string
	AuthoredAt time.Time
}

// QuestionnaireURL returns the canonical URL of a questionnaire.
func QuestionnaireURL(id string) string { return ownSystem + "questionnaire:" + id }

// questionnaireResult is the link id of the item with what the answers show.
const questionnaireResult = "result"

type (
	formExtension struct {
		URL          string          `json:"url"`
		Extension    []formExtension `json:"extension,omitempty"`
		ValueCode    string          `json:"valueCode,omitempty"`
		ValueString  string          `json:"valueString,omitempty"`
		ValueDecimal *int            `json:"valueDecimal,omitempty"`
	}
	extended struct {
		Extension []formExtension `json:"extension"`
	}
	scoredCoding struct {
		Extension []formExtension `json:"extension,omitempty"`
		coding
		DisplayElement *extended `json:"_display,omitempty"`
	}
	answerOption struct {
		ValueCoding scoredCoding `json:"valueCoding"`
	}
	questionnaireItem struct {
		LinkID       string         `json:"linkId"`
		Code         []coding       `json:"code,omitempty"`
		Text         string         `json:"text"`
		TextElement  *extended      `json:"_text,omitempty"`
		Type         string         `json:"type"`
		Required     bool           `json:"required,omitempty"`
		ReadOnly     bool           `json:"readOnly,omitempty"`
		AnswerOption []answerOption `json:"answerOption,omitempty"`
	}
	questionnaireResource struct {
		ResourceType string              `json:"resourceType"`
		ID           string              `json:"id"`
		URL          string              `json:"url"`
		Version      string              `json:"version"`
		Name         string              `json:"name"`
		Title        string              `json:"title"`
		Status       string              `json:"status"`
		Experimental bool                `json:"experimental"`
		SubjectType  []string            `json:"subjectType"`
		Date         string              `json:"date"`
		Publisher    string              `json:"publisher"`
		Copyright    string              `json:"copyright,omitempty"`
		Code         []coding            `json:"code"`
		Item         []questionnaireItem `json:"item"`
	}
	answerValue struct {
		ValueCoding  *coding `json:"valueCoding,omitempty"`
		ValueInteger *int    `json:"valueInteger,omitempty"`
	}
	answeredItem struct {
		LinkID string        `json:"linkId"`
		Text   string        `json:"text"`
		Answer []answerValue `json:"answer"`
	}
	questionnaireResponse struct {
		ResourceType  string         `json:"resourceType"`
		ID            string         `json:"id"`
		Meta          meta           `json:"meta"`
		Questionnaire string         `json:"questionnaire"`
		Status        string         `json:"status"`
		Subject       reference      `json:"subject"`
		Authored      string         `json:"authored"`
		Author        *reference     `json:"author,omitempty"`
		Source        reference      `json:"source"`
		Item          []answeredItem `json:"item"`
	}
)

func (c Code) coding() coding { return coding(c) }

// spanish returns the translation of an element. Source: FHIR R4, extension translation.
func spanish(text string) *extended {
	return &extended{Extension: []formExtension{{
		URL: "http://hl7.org/fhir/StructureDefinition/translation", Extension: []formExtension{{URL: "lang", ValueCode: "es"}, {URL: "content", ValueString: text}},
	}}}
}

// Questionnaire returns a questionnaire in English, with Spanish as translations. Items that Vigil calculates are read-only. Source: FHIR R4,
// Questionnaire, extension ordinalValue; docs/decisions/fhir.md, "Questionnaires".
func Questionnaire(f QuestionnaireForm) Resource {
	r := questionnaireResource{
		ResourceType: "Questionnaire", ID: f.ID, URL: QuestionnaireURL(f.ID), Version: f.Version, Name: strings.ReplaceAll(titled(f.ID, "-"), " ", ""),
		Title: f.Title, Status: "active", SubjectType: []string{"Patient"}, Date: f.Version, Publisher: "Vigil", Copyright: f.Copyright, Code: []coding{f.Code.coding()},
		Item: []questionnaireItem{{LinkID: "introduction", Text: f.Introduction.English, TextElement: spanish(f.Introduction.Spanish), Type: "display"}},
	}
	for _, item := range f.Items {
		one := questionnaireItem{LinkID: item.ID, Text: item.Text.English, TextElement: spanish(item.Text.Spanish), Type: "choice", Required: true}
		if item.Code != nil {
			one.Code = []coding{item.Code.coding()}
		}
		for _, o := range item.Options {
			one.AnswerOption = append(one.AnswerOption, answerOption{scoredCoding{
				Extension: []formExtension{{URL: "http://hl7.org/fhir/StructureDefinition/ordinalValue", ValueDecimal: &o.Score}},
				coding:    o.Code.coding(), DisplayElement: spanish(o.Text.Spanish),
			}})
		}
		r.Item = append(r.Item, one)
	}
	if f.Total != nil {
		r.Item = append(r.Item, questionnaireItem{LinkID: f.Total.Code, Code: []coding{f.Total.coding()}, Text: f.Total.Display, Type: "integer", ReadOnly: true})
	}
	result := questionnaireItem{LinkID: questionnaireResult, Text: "Result", Type: "choice", ReadOnly: true}
	for _, code := range f.Results {
		result.AnswerOption = append(result.AnswerOption, answerOption{scoredCoding{coding: code.coding()}})
	}
	r.Item = append(r.Item, result)
	return Resource{content: r}
}

// QuestionnaireResponse returns answers with their score and result. Source: FHIR R4, QuestionnaireResponse.
func QuestionnaireResponse(a QuestionnaireAnswers) Resource {
	patient := reference{Reference: "Patient/" + a.PatientID}
	r := questionnaireResponse{
		ResourceType: "QuestionnaireResponse", ID: a.ID, Questionnaire: QuestionnaireURL(a.Form.ID) + "|" + a.Form.Version, Status: "completed", Subject: patient,
		Authored: validate.FormatInstant(a.AuthoredAt), Author: &patient, Source: patient,
	}
	switch a.Source {
	case "caregiver":
		r.Source = reference{Type: "RelatedPerson", Display: "Caregiver"}
		r.Author = &r.Source
	case "staff":
		r.Author = &reference{Type: "Practitioner", Display: "Staff, by phone"}
	}
	for _, item := range a.Form.Items {
		for _, o := range item.Options {
			if o.Code.Code == a.Chosen[item.ID] {
				chosen := o.Code.coding()
				r.Item = append(r.Item, answeredItem{item.ID, item.Text.English, []answerValue{{ValueCoding: &chosen}}})
			}
		}
	}
	if total := a.Form.Total; total != nil {
		r.Item = append(r.Item, answeredItem{total.Code, total.Display, []answerValue{{ValueInteger: &a.Score}}})
	}
	result := a.Result.coding()
	r.Item = append(r.Item, answeredItem{questionnaireResult, "Result", []answerValue{{ValueCoding: &result}}})
	return withVersion(&r, &r.Meta, a.AuthoredAt)
}
