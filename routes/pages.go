package routes

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"
	"github.com/swaggest/swgui/v5/static"

	"github.com/vigilhealth/vigil/routes/console"
	"github.com/vigilhealth/vigil/routes/web"
)

// pagePolicy limits the console to resources of this service: no inline scripts, no other origin, no frames.
const pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// ServePages serves the console's files on every path without another route, in the best content coding that the
// browser accepts. frameAncestors are the sites that may show the console in a frame.
func ServePages(r *router.Router[*core.RequestEvent], files fs.FS, frameAncestors []string) {
	pages := console.New(files)
	policy := pagePolicy
	if len(frameAncestors) > 0 {
		policy = strings.Replace(pagePolicy, "frame-ancestors 'none'", "frame-ancestors "+strings.Join(frameAncestors, " "), 1)
	}
	r.GET("/{path...}", func(e *core.RequestEvent) error {
		if len(frameAncestors) > 0 {
			e.Response.Header().Del("X-Frame-Options") // it cannot name other sites; the policy does
		}
		return showPage(e, pages, policy)
	}).Bind(apis.SkipSuccessActivityLog())
}

func showPage(e *core.RequestEvent, pages *console.Files, policy string) error {
	h := e.Response.Header()
	h.Set("Vary", strings.Join(append(h.Values("Vary"), "Accept-Encoding"), ", "))
	h.Set("X-Content-Type-Options", "nosniff")
	name, isCurrent := pages.Unversioned(cmp.Or(e.Request.PathValue("path"), "index.html"))
	h.Set("Cache-Control", "no-cache")
	if isCurrent {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	file, err := pages.Find(strings.TrimSuffix(name, "/"))
	if err == nil && isAsset(name) {
		h.Del("X-Frame-Options")
		h.Del("X-Xss-Protection")
		h.Del("Cross-Origin-Opener-Policy") // PocketBase sets these on every response
	} else {
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	if err != nil {
		return router.ErrFileNotFound
	}
	if name != "index.html" && strings.HasSuffix(e.Request.URL.Path, "/") {
		return e.Redirect(http.StatusMovedPermanently, "/"+strings.TrimSuffix(name, "/"))
	}
	coding := console.ChooseCoding(e.Request.Header.Values("Accept-Encoding"))
	body, tag, err := file.Encoded(coding)
	if err != nil {
		return err
	}
	h.Set("ETag", tag)
	if web.MatchesTag(e.Request, tag) {
		e.Response.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", file.Type)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if coding != console.Plain {
		h.Set("Content-Encoding", coding)
	}
	e.Response.WriteHeader(http.StatusOK)
	if e.Request.Method == http.MethodHead {
		return nil
	}
	_, err = e.Response.Write(body)
	return err
}

// isAsset reports whether a file is a script module or a stylesheet. Browsers ignore page headers on these, so the
// page's two hundred assets go without them.
func isAsset(name string) bool {
	folder, _, _ := strings.Cut(name, "/")
	return slices.Contains([]string{"app", "vendor", "style"}, folder)
}

// docsPath is the path of the API reference.
const docsPath = "/api/docs/"

//go:embed docs
var ownDocs embed.FS

// docsPolicy also allows Swagger UI's embedded data images and style attributes.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsFiles are the pages of the API reference: Vigil's own, and the compressed files that the Swagger UI package
// embeds.
var docsFiles = map[string]string{
	"": "text/html; charset=utf-8", "start.js": "text/javascript; charset=utf-8", "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
	"swagger-ui.css": "text/css; charset=utf-8", "favicon-32x32.png": "image/png",
}

// mountDocs serves the API reference without a token. Source: docs/decisions/versioning.md, "Deprecation signals".
func mountDocs(group *router.RouterGroup[*core.RequestEvent]) {
	for name := range docsFiles {
		for _, pattern := range web.Patterns(docsPath + name) {
			group.GET(pattern, showDocs(name))
		}
	}
}

func showDocs(name string) func(*core.RequestEvent) error {
	return func(e *core.RequestEvent) error {
		web.SetCommonHeaders(e)
		h := e.Response.Header()
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", docsFiles[name])
		h.Set("Vary", "Accept-Encoding")
		body, zipped, err := docsFile(name)
		if err != nil {
			return err
		}
		if zipped && strings.Contains(e.Request.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
		} else if zipped {
			if body, err = unzip(body); err != nil {
				return err
			}
		}
		e.Response.WriteHeader(http.StatusOK)
		if e.Request.Method == http.MethodHead {
			return nil
		}
		_, err = e.Response.Write(body)
		return err
	}
}

// docsFile reads one file and reports whether it is compressed.
func docsFile(name string) (body []byte, zipped bool, err error) {
	name = cmp.Or(name, "index.html")
	if body, err = ownDocs.ReadFile(path.Join("docs", name)); err == nil {
		return body, false, nil
	}
	if body, err = fs.ReadFile(static.FS, name+".gz"); err == nil {
		return body, true, nil
	}
	if body, err = fs.ReadFile(static.FS, name); err != nil {
		return nil, false, fmt.Errorf("page %s: %w", name, err)
	}
	return body, false, nil
}

func unzip(body []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("open a page of the API reference: %w", err)
	}
	defer func() { _ = reader.Close() }() // read only
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read a page of the API reference: %w", err)
	}
	return plain, nil
}
