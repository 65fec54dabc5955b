package vigiltest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas holds the contract's JSON schemas, each compiled once. openapi3filter would compile a schema for every answer,
// which takes longer than producing the answer. The "schema" members of OpenAPI 3.1 are JSON Schema 2020-12.
type schemas struct {
	lock     sync.Mutex // the compiler is not safe for concurrent use
	compiler *jsonschema.Compiler
}

const contractURL = "https://vigil.example.org/openapi.json"

func newSchemas(document *openapi3.T) (*schemas, error) {
	text, err := document.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding openapi.yaml: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading openapi.yaml: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(contractURL, value); err != nil {
		return nil, fmt.Errorf("reading openapi.yaml: %w", err)
	}
	return &schemas{compiler: compiler}, nil
}

// find returns the schema of an answer's body, or nil if the body is not JSON or not described.
func (s *schemas) find(operation *routers.Route, status int, header http.Header) (*jsonschema.Schema, error) {
	described, code := operation.Operation.Responses.Value(strconv.Itoa(status)), strconv.Itoa(status)
	if described == nil {
		described, code = operation.Operation.Responses.Default(), "default"
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") || described == nil || described.Value == nil {
		return nil, nil
	}
	if content := described.Value.Content[kind]; content == nil || content.Schema == nil {
		return nil, nil
	}
	place := described.Ref
	if place == "" {
		place = "#" + pointer("paths", operation.Path, strings.ToLower(operation.Method), "responses", code)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	schema, err := s.compiler.Compile(contractURL + place + pointer("content", kind, "schema"))
	if err != nil {
		return nil, fmt.Errorf("compiling a schema: %w", err)
	}
	return schema, nil
}

// pointer returns the end of a JSON Pointer (RFC 6901) in a URI fragment.
func pointer(steps ...string) string {
	var text strings.Builder
	for _, step := range steps {
		text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", "%", "%25").Replace(step))
	}
	return text.String()
}
