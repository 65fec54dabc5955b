package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dexProgram builds Dex in a separate module, because the service uses none of its libraries.
func dexProgram(t *testing.T) string {
	t.Helper()
	return ownModule(t, filepath.Join("e2e", "testdata", "dex"), ".", "Dex")
}

// ownModule builds a program of a separate module. It skips the test when the module's libraries are not available.
func ownModule(t *testing.T, folder, program, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.ToLower(name))
	fetch := exec.CommandContext(t.Context(), "go", "mod", "download")
	fetch.Dir = folder
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("the modules of %s are not available: tests with it are skipped: %v\n%s", name, err, out)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, program)
	build.Dir, build.Env = fetch.Dir, append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s is not built: %v\n%s", name, err, out)
	}
	return path
}

// dexFile configures Dex with one client and the mock connector, which signs in Dex's test user with the group "authors".
const dexFile = `
issuer: http://{addr}/dex
storage: {type: memory}
web: {http: "{addr}"}
oauth2: {skipApprovalScreen: true}
connectors: [{type: mockCallback, id: mock, name: Example}]
staticClients: [{id: vigil, name: Vigil, secret: secret of the test, redirectURIs: ["{redirect}"]}]
`

// dex serves until the test ends, for a client with a redirect address.
func dex(t *testing.T, redirect string) (issuer string) {
	t.Helper()
	addr, file := freeAddr(t), filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(strings.NewReplacer("{addr}", addr, "{redirect}", redirect).Replace(dexFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	process := exec.CommandContext(ctx, dexProgram(t), "serve", file)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = process.Wait() // it was killed
	})
	issuer = "http://" + addr + "/dex"
	eventually(t, within, "Dex serves", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+"/.well-known/openid-configuration", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return issuer
}

// A nurse of a real identity provider signs in and gets the role of her group. Source: docs/decisions/authentication.md,
// "Single sign-on".
func TestSignOnWithDex(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a real identity provider is built first")
	}
	addr := freeAddr(t)
	issuer := dex(t, "http://"+addr+"/api/v1/auth/oidc/callback/")
	p := newPractice(t, "VIGIL_OIDC_ISSUER="+issuer, "VIGIL_OIDC_CLIENT_ID=vigil", "VIGIL_OIDC_CLIENT_SECRET=secret of the test",
		"VIGIL_OIDC_ROLE_MAP=authors=nurse", "VIGIL_OIDC_REQUIRE=true", "VIGIL_PUBLIC_URL=http://"+addr).serve(t, addr)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(address, accept string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	page := get(p.URL+"/api/v1/auth/oidc/login/", "text/html,*/*;q=0.8")
	if err := page.Body.Close(); err != nil {
		t.Fatal(err)
	}
	query, found := strings.CutPrefix(page.Request.URL.Fragment, "/sign-on?")
	if page.StatusCode != 200 || page.Request.URL.Host != addr || !found {
		t.Fatalf("the browser ends at %s with %d", page.Request.URL, page.StatusCode)
	}
	if values, err := url.ParseQuery(query); err != nil || values.Get("code") == "" || values.Get("state") == "" {
		t.Fatalf("%s, %v", query, err)
	}
	signedIn := get(p.URL+"/api/v1/auth/oidc/callback/?"+query, "application/json")
	body, err := io.ReadAll(signedIn.Body)
	if err := signedIn.Body.Close(); err != nil {
		t.Fatal(err)
	}
	session := answer{request: "the callback", status: signedIn.StatusCode, body: body}
	if err != nil {
		t.Fatal(err)
	}
	wantAt(t, session.expect(t, 200), object{"user.email": "kilgore@kilgore.trout", "user.first_name": "Kilgore", "user.last_name": "Trout", "user.role": "nurse"})
	p.get(t, "/api/v1/triage/patients/", text(t, session, "access")).expect(t, 200)

	const local = "local@vigil.test"
	p.record(t, "users", object{"email": local, "password": password, "passwordConfirm": password, "role": "nurse", "is_active": true})
	wantAt(t, p.post(t, "/api/v1/auth/login/", "", object{"email": local, "password": password}).expect(t, 403), object{"code": "sso_required"})
	p.Admin(t)
	status, out, errOut := vigil(t, p.Env, "", "check", "--dir", p.Dir)
	if status == 1 || strings.Contains(out+errOut, "secret of the test") {
		t.Errorf("check: %d\n%s%s", status, out, errOut)
	}
	t.Run("console", func(t *testing.T) {
		needsConsole(t)
		nobody := map[string]any{}
		newChromium(t).run(t, p, "console_sign_on.mjs", object{}, &nobody)
	})
}
