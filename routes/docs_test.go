package routes_test

import (
	"regexp"
	"strings"
	"testing"
)

// Every file that the page loads is served here with the right type; nothing on the page is inline or loaded from
// another origin.
func TestDocs(t *testing.T) {
	s := serve(t)
	page := s.do(request{target: "/api/docs/"})
	expect(t, page, 200, "")
	if again := s.do(request{target: "/api/docs"}); again.Body.String() != page.Body.String() {
		t.Error("without its slash it is another page")
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(page.Body.String(), "//cdn") {
		t.Errorf("policy %q", policy)
	}
	named := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(named) != 5 || regexp.MustCompile(`<script>|<style|style=`).MatchString(page.Body.String()) {
		t.Errorf("the page names %v", named)
	}
	kinds := map[string]string{"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "png": "image/png"}
	for _, link := range named {
		plain := s.do(request{target: link[1]})
		expect(t, plain, 200, "")
		if i := strings.LastIndexByte(link[1], '.'); i > 0 && plain.Header().Get("Content-Type") != kinds[link[1][i+1:]] {
			t.Errorf("%s is %s", link[1], plain.Header().Get("Content-Type"))
		}
		zipped := s.do(request{target: link[1], header: map[string]string{"Accept-Encoding": "gzip, br"}})
		expect(t, zipped, 200, "")
		if zipped.Header().Get("Content-Encoding") == "gzip" && zipped.Body.Len() >= plain.Body.Len() {
			t.Errorf("%s grows when compressed", link[1])
		}
	}
	if head := s.do(request{method: "HEAD", target: "/api/docs/start.js"}); head.Code != 200 || head.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", head.Code, head.Body.Len())
	}
	expect(t, s.do(request{target: "/api/docs/swagger-ui.js"}), 404, "not_found")
	expect(t, s.do(request{target: "/api/docs/../v1/schema/"}), 404, "")
	expect(t, s.do(request{method: "POST", target: "/api/docs/"}), 404, "not_found")
}
