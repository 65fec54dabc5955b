package vigiltest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// commonStatuses are the error statuses that an operation covers by its `default` response.
var commonStatuses = []int{405, 406, 408, 409, 413, 415, 422, 429, 500, 503}

// CheckResponse fails the test when an answer does not match openapi.yaml: an operation or status that is not described, or
// a body that does not fit its schema. The path is the requested one, without its query.
func CheckResponse(t testing.TB, method, path string, status int, header http.Header, body []byte) {
	t.Helper()
	contract, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	if err := contract.check(method, path, status, header, body); err != nil {
		t.Errorf("%s %s answered %d, which does not match the contract: %v", method, path, status, err)
	}
}

// contract is the parsed document, with a mux that finds the operation of a request as the router does.
type contract struct {
	document   *openapi3.T
	mux        *http.ServeMux
	operations map[string]*routers.Route // by mux pattern
	schemas    *schemas
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	for _, file := range []string{"image/png", "image/svg+xml", "application/pdf", "text/xml", "application/edi-x12", "application/fhir+ndjson"} {
		openapi3filter.RegisterBodyDecoder(file, openapi3filter.FileBodyDecoder)
	}
	document, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "routes", "openapi.yaml"))
	if err != nil {
		return nil, fmt.Errorf("loading openapi.yaml: %w", err)
	}
	if err := document.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validating openapi.yaml: %w", err)
	}
	schemas, err := newSchemas(document)
	if err != nil {
		return nil, err
	}
	c := &contract{document: document, mux: http.NewServeMux(), operations: map[string]*routers.Route{}, schemas: schemas}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			pattern := method + " " + path
			if strings.HasSuffix(path, "/") {
				pattern += "{$}"
			}
			c.mux.Handle(pattern, http.NotFoundHandler())
			c.operations[pattern] = &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: operation}
		}
	}
	return c, nil
})

func (c *contract) check(method, path string, status int, header http.Header, body []byte) error {
	request, operation := c.find(method, path)
	if operation == nil {
		return fmt.Errorf("the operation is not described")
	}
	if operation.Operation.Responses.Value(strconv.Itoa(status)) == nil && !slices.Contains(commonStatuses, status) {
		return fmt.Errorf("the status is not described")
	}
	if status == http.StatusNoContent && len(body) > 0 {
		return fmt.Errorf("a body of %d bytes with a 204", len(body))
	}
	schema, err := c.schemas.find(operation, status, header)
	if err != nil {
		return err
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, Route: operation},
		Status:                 status,
		Header:                 header,
		Body:                   io.NopCloser(bytes.NewReader(body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: schema != nil},
	})
	if err != nil || schema == nil || method == http.MethodHead { // its body is not validated
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	return schema.Validate(value)
}

// find matches the path as it is, then with the trailing slash that a caller may omit.
func (c *contract) find(method, path string) (*http.Request, *routers.Route) {
	asked := method
	if method == http.MethodHead {
		asked = http.MethodGet
	}
	for _, form := range []string{path, path + "/"} {
		request := &http.Request{Method: asked, URL: &url.URL{Path: form}}
		if _, pattern := c.mux.Handler(request); c.operations[pattern] != nil {
			request.Method = method
			return request, c.operations[pattern]
		}
	}
	return nil, nil
}

// moduleRoot returns the folder of go.mod. openapi.yaml is read from disk: importing the routes would create an import
// cycle with the tests of every package that the routes import.
func moduleRoot() (string, error) {
	folder, err := os.Getwd() // go test runs in the folder of the package
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("finding the module: no go.mod above the test; run it inside the repository")
		}
		folder = parent
	}
}

//go:embed validator
var validatorFiles embed.FS

// FHIRIssues returns the findings of a FHIR validator for each resource, by name: against its R4 type, the R4 profiles that
// its codes require and the US Core profile it claims. Value sets, fixed codes and empty arrays are not validated; the
// caller must check them. The test is skipped without Node.
func FHIRIssues(t *testing.T, resources map[string]json.RawMessage) map[string][]string {
	t.Helper()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed: resources are not validated", name)
		}
	}
	dir := t.TempDir()
	files, err := fs.Sub(validatorFiles, "validator")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	type named struct {
		Name     string          `json:"name"`
		Resource json.RawMessage `json:"resource"`
	}
	var list []named
	for name, resource := range resources {
		list = append(list, named{name, resource})
	}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	validate := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "validate.mjs"))
	validate.Stdin, validate.Stderr = bytes.NewReader(in), os.Stderr
	out, err := validate.Output()
	if err != nil {
		t.Fatalf("validate.mjs: %v", err)
	}
	var issues map[string][]string
	if err := json.Unmarshal(out, &issues); err != nil {
		t.Fatalf("validate.mjs: %v in %s", err, out)
	}
	if len(issues) != len(resources) {
		t.Fatalf("%d of %d resources were validated", len(issues), len(resources))
	}
	return issues
}
