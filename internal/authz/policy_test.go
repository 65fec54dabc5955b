package authz_test

import (
	"bufio"
	"encoding/csv"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
)

// scopes maps the cells of the matrix to scopes.
var scopes = map[string]authz.Reach{"no": authz.None, "nc": authz.NonCritical, "own": authz.Own, "all": authz.All}

// matrix reads testdata/matrix.csv: method, path, action, then a cell for each role in the contract's order.
func matrix(t *testing.T) [][]string {
	t.Helper()
	file, err := os.Open("testdata/matrix.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var header []string
	for _, role := range authz.Roles {
		header = append(header, string(role))
	}
	if !slices.Equal(rows[0][3:], header) {
		t.Fatalf("the matrix is about %v", rows[0][3:])
	}
	return rows[1:]
}

// TestPolicyMatchesMatrix checks every endpoint of the matrix for every role.
func TestPolicyMatchesMatrix(t *testing.T) {
	named := map[authz.Action]bool{}
	for _, row := range matrix(t) {
		action := authz.Action(row[2])
		named[action] = true
		for i, role := range authz.Roles {
			cell := row[3+i]
			switch action {
			case authz.Anyone:
				if cell != "pub" {
					t.Errorf("%s %s is public but %s for %s", row[0], row[1], cell, role)
				}
			case authz.SignedByGateway:
				if cell != "signed" {
					t.Errorf("%s %s is signed but %s for %s", row[0], row[1], cell, role)
				}
			default:
				want, known := scopes[cell]
				if !known {
					t.Errorf("%s %s: %q for %s", row[0], row[1], cell, role)
				}
				if got := authz.ReachOf(role, action); got != want {
					t.Errorf("%s may %q to %d, want %d (%s %s)", role, action, got, want, row[0], row[1])
				}
			}
		}
	}
	for _, action := range authz.Actions() {
		if !named[action] {
			t.Errorf("%q is in the policy but in no row of the matrix", action)
		}
	}
}

func TestUnknownRolesAndActionsAreRefused(t *testing.T) {
	for _, action := range authz.Actions() {
		for _, role := range []authz.Role{"", "superuser", "Admin", "admin "} {
			if authz.ReachOf(role, action) != authz.None || role.Valid() {
				t.Errorf("%q may %q", role, action)
			}
		}
	}
	for _, role := range authz.Roles {
		for _, action := range []authz.Action{"", authz.Anyone, authz.SignedByGateway, "an unlisted action"} {
			if authz.ReachOf(role, action) != authz.None {
				t.Errorf("%s may %q", role, action)
			}
		}
		if name, description := role.Describe(); name == "" || description == "" {
			t.Errorf("%s is not described", role)
		}
	}
}

// documented is a row of the table in docs/decisions/roles.md: method, path, cells.
var documented = regexp.MustCompile("^\\| ([A-Z]+) (/?[^ |]+)(?: `\\[\\+\\]`)? \\|((?: [^|]+ \\|){7})$")

// TestDocumentedMatrixMatches checks that the table of docs/decisions/roles.md has the same rows and cells as the matrix.
func TestDocumentedMatrixMatches(t *testing.T) {
	file, err := os.Open("../../docs/decisions/roles.md")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	words := strings.NewReplacer("–", "no", "Y", "all")
	inDocs := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if m := documented.FindStringSubmatch(lines.Text()); m != nil {
			inDocs[m[1]+" "+endpoint(m[2])] = strings.Join(strings.Fields(strings.ReplaceAll(words.Replace(m[3]), "|", " ")), ",")
		}
	}
	for _, row := range matrix(t) {
		name, want := row[0]+" "+row[1], strings.Join(row[3:], ",")
		if got := inDocs[name]; got != want {
			t.Errorf("%s: the matrix has %q, the documents have %q", name, want, got)
		}
		delete(inDocs, name)
	}
	for name := range inDocs {
		t.Errorf("%s is in the documents but not in the matrix", name)
	}
}

// endpoint returns a documented path in the form of the matrix.
func endpoint(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/api/v1/" + path
}

func BenchmarkReach(b *testing.B) {
	for b.Loop() {
		authz.ReachOf(authz.Nurse, authz.ReadAlerts)
	}
}
