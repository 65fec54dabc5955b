package routes_test

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"
	"github.com/pocketbase/pocketbase/apis"

	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/console"
)

// servePages serves a folder as the program serves the console.
func servePages(t *testing.T, files fs.FS) *server {
	t.Helper()
	router, err := apis.NewRouter(vigiltest.NewApp(t))
	if err != nil {
		t.Fatal(err)
	}
	routes.ServePages(router, files, nil)
	mux, err := router.BuildMux()
	if err != nil {
		t.Fatal(err)
	}
	return &server{t, mux}
}

// unpacked returns an answer's body without its content encoding.
func unpacked(t *testing.T, rec *httptest.ResponseRecorder) string {
	t.Helper()
	var reader io.Reader = rec.Body
	switch rec.Header().Get("Content-Encoding") {
	case "br":
		reader = brotli.NewReader(rec.Body)
	case "gzip":
		unzipped, err := gzip.NewReader(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		reader = unzipped
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const pageModule = "// A comment that nobody needs to have sent.\nexport const answer = 42;\n"

// packedPages has a page, a compressed module, and a module changed after its compression.
func packedPages() fstest.MapFS {
	var packed strings.Builder
	w := brotli.NewWriter(&packed)
	_, _ = io.WriteString(w, "export const answer=42;")
	_ = w.Close()
	return fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html><title>Vigil</title>")}, "reset-password": {Data: []byte("<!doctype html>")},
		"app/main.js": {Data: []byte(pageModule)}, "app/new.js": {Data: []byte(pageModule + "\n")}, "style/a.css": {Data: []byte("a{}")},
		"favicon.svg": {Data: []byte("<svg/>")}, "vendor/packed/" + console.HashName([]byte(pageModule)) + ".br": {Data: []byte(packed.String())},
	}
}

// A browser gets the encoding it prefers, and each compressed file exists in all of them.
func TestPageContentEncoding(t *testing.T) {
	s := servePages(t, packedPages())
	tags := map[string]bool{}
	for accepted, want := range map[string]string{
		"gzip, deflate, br, zstd": "br", "gzip": "gzip", "br": "br", "": "", "identity": "", "GZIP;q=0.5, br;q=0": "gzip", "br;q=0.1, gzip;q=0.9": "gzip",
		"gzip;q=0, br;q=0": "", "*": "br", "*;q=0": "", "br;q=0, *": "gzip", "deflate": "", "br;q=x": "", "identity;q=1, br;q=0.5": "",
	} {
		rec := s.do(request{target: "/app/main.js", header: map[string]string{"Accept-Encoding": accepted}})
		h := rec.Header()
		if rec.Code != 200 || h.Get("Content-Encoding") != want || h.Get("Content-Type") != "text/javascript; charset=utf-8" ||
			!strings.Contains(h.Get("Vary"), "Accept-Encoding") || h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("Accept-Encoding %q: %d %v", accepted, rec.Code, h)
		}
		tag := h.Get("ETag")
		tags[tag] = true
		if got := unpacked(t, rec); got != "export const answer=42;" {
			t.Errorf("Accept-Encoding %q: %q", accepted, got)
		}
		again := s.do(request{target: "/app/main.js", header: map[string]string{"Accept-Encoding": accepted, "If-None-Match": tag}})
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 || again.Header().Get("ETag") != tag {
			t.Errorf("Accept-Encoding %q, known: %d, %d bytes", accepted, again.Code, again.Body.Len())
		}
		head := s.do(request{method: "HEAD", target: "/app/main.js", header: map[string]string{"Accept-Encoding": accepted}})
		if head.Code != 200 || head.Body.Len() != 0 || head.Header().Get("Content-Length") != h.Get("Content-Length") {
			t.Errorf("Accept-Encoding %q, HEAD: %d %v", accepted, head.Code, head.Header())
		}
	}
	if len(tags) != 3 {
		t.Errorf("three codings have the tags %v", tags)
	}
	if got := unpacked(t, s.do(request{target: "/app/new.js", header: map[string]string{"Accept-Encoding": "br"}})); got != pageModule+"\n" {
		t.Errorf("a file changed after packing is sent as %q", got)
	}
}

// The page names its files by the version of all; only such an address is cached permanently, and a changed file changes it.
func TestVersionedFiles(t *testing.T) {
	pages := packedPages()
	pages["index.html"] = &fstest.MapFile{Data: []byte(`<link href="/app/main.js"><link href="/api/docs/">`)}
	s := servePages(t, pages)
	named := func(s *server) string {
		page := s.do(request{target: "/"})
		if page.Header().Get("Cache-Control") != "no-cache" || !strings.Contains(page.Body.String(), `href="/api/docs/"`) {
			t.Errorf("the page: %v %s", page.Header(), page.Body)
		}
		return regexp.MustCompile(`/v/[0-9a-f]+/app/main\.js`).FindString(page.Body.String())
	}
	address := named(s)
	for target, want := range map[string]string{
		address: "public, max-age=31536000, immutable", "/app/main.js": "no-cache", "/v/000000000000/app/main.js": "no-cache",
	} {
		rec := s.do(request{target: target, header: map[string]string{"Accept-Encoding": "br"}})
		if rec.Code != 200 || rec.Header().Get("Cache-Control") != want || rec.Header().Get("Content-Security-Policy") != "" || unpacked(t, rec) != "export const answer=42;" {
			t.Errorf("%s: %d %v", target, rec.Code, rec.Header())
		}
	}
	for _, target := range []string{"/v/", "/v/000000000000", "/v/000000000000/", strings.Replace(address, "main.js", "none.js", 1)} {
		if rec := s.do(request{target: target}); rec.Code != 404 {
			t.Errorf("%s: %d", target, rec.Code)
		}
	}
	pages["style/a.css"] = &fstest.MapFile{Data: []byte("a{color:red}")}
	if again := named(servePages(t, pages)); again == "" || again == address {
		t.Errorf("with a changed file the address is %q again", again)
	}
}

// Pages have their security headers; a path that is not one of the console's files returns 404, the compressed files
// included.
func TestOnlyPagesAreServed(t *testing.T) {
	pages := packedPages()
	s := servePages(t, pages)
	for target, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/reset-password": "text/html; charset=utf-8", "/favicon.svg": "image/svg+xml", "/style/a.css": "text/css; charset=utf-8",
	} {
		rec := s.do(request{target: target})
		ruled := strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'self';") && rec.Header().Get("X-Frame-Options") != ""
		if rec.Code != 200 || rec.Header().Get("Content-Type") != want || ruled == strings.HasPrefix(target, "/style") {
			t.Errorf("%s: %d %v", target, rec.Code, rec.Header())
		}
	}
	if rec := s.do(request{target: "/reset-password/"}); rec.Code != 301 || rec.Header().Get("Location") != "/reset-password" {
		t.Errorf("with a slash: %d %v", rec.Code, rec.Header())
	}
	targets := []string{"/app", "/app/", "/nothing.js", "/app/../index.html", "/%2e%2e/main.js"}
	for name := range pages {
		if strings.HasPrefix(name, "vendor/packed/") {
			targets = append(targets, "/"+name)
		}
	}
	for _, target := range targets {
		if rec := s.do(request{target: target}); rec.Code == 200 {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

// consoleWeight is the limit for all console files as sent to a browser, in bytes without headers. The patient portal, which staff never load,
// is 16,000 of it: most are its texts in two languages.
const consoleWeight = 298_000

// All files of the console are within the limit, and each module parses on its own.
func TestConsoleSize(t *testing.T) {
	console := os.DirFS("../pb_public")
	if _, err := fs.Stat(console, "vendor/packed"); err != nil {
		t.Skip("the console is not packed: run make web")
	}
	s := servePages(t, console)
	whole := 0
	served := t.TempDir()
	err := fs.WalkDir(console, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "vendor/packed/") {
			return err
		}
		rec := s.do(request{target: "/" + strings.TrimSuffix(name, "index.html"), header: map[string]string{"Accept-Encoding": "gzip, deflate, br, zstd"}})
		if rec.Code != 200 || rec.Header().Get("Content-Encoding") != "br" {
			t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
		}
		whole += rec.Body.Len()
		plain := unpacked(t, rec)
		if strings.HasPrefix(name, "app/") && (strings.Contains(plain, "/**") || strings.Contains(plain, "\n// ")) {
			t.Errorf("%s is sent with its comments: run make web", name)
		}
		if strings.HasSuffix(name, ".js") {
			return os.WriteFile(served+"/"+strings.ReplaceAll(name, "/", "_")+".mjs", []byte(plain), 0o600)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if whole > consoleWeight {
		t.Errorf("the console weighs %d bytes, more than %d", whole, consoleWeight)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node here: what is sent is not read as a script")
	}
	check := exec.CommandContext(t.Context(), node, "--experimental-vm-modules", "--no-warnings", "--input-type=module", "--eval", readModules)
	check.Dir = served
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("an invalid module is sent: %v\n%s", err, out)
	}
}

// readModules parses every module of its folder with Node and fails at an invalid one.
const readModules = `import fs from "node:fs"; import vm from "node:vm";
const names = fs.readdirSync(".");
for (const name of names) new vm.SourceTextModule(fs.readFileSync(name, "utf8"), { identifier: name });
if (names.length < 100) throw new Error(names.length + " modules");`
