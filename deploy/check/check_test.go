package check

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// deployed reads a file of deploy/.
func deployed(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// program finds a tool's program, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here", name)
	}
	return path
}

func TestContainerfile(t *testing.T) {
	parsed, err := parser.Parse(bytes.NewReader(deployed(t, "Containerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("warnings: %v", parsed.Warnings)
	}
	warn := func(rule, _, _, message string, _ []parser.Range) { t.Errorf("%s: %s", rule, message) }
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the last stage is made from %s", last.BaseName)
	}
	var user string
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.CmdCommand:
			wantServe(t, c.CmdLine)
		case *instructions.CopyCommand:
			if !slices.ContainsFunc(stages, func(s instructions.Stage) bool { return s.Name == c.From }) {
				t.Errorf("copies from %q, which is no stage", c.From)
			}
		}
	}
	if user != "65532:65532" {
		t.Errorf("runs as %q", user)
	}
}

func wantServe(t *testing.T, args []string) {
	t.Helper()
	if !slices.Equal(args, []string{"serve", "--http", "0.0.0.0:8090", "--dir", "/data"}) {
		t.Errorf("starts as %v", args)
	}
}

func TestCompose(t *testing.T) {
	dir := t.TempDir() // with the files that the operator adds
	for name, content := range map[string][]byte{"compose.yaml": deployed(t, "compose.yaml"), "vigil.env": []byte("A=1\n"), "replica.env": []byte("B=2\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if names := project.ServiceNames(); !slices.Equal(names, []string{"proxy", "replica", "vigil"}) {
		t.Errorf("services %v", names)
	}
	service := project.Services["vigil"]
	if !service.ReadOnly || len(service.Ports) > 0 || service.Volumes[0].Target != "/data" {
		t.Errorf("the service is not locked in: %+v", service)
	}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type != "bind" {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", filepath.Base(volume.Source))); err != nil {
				t.Errorf("%s mounts what is not here: %v", name, err)
			}
		}
	}
}

func TestKubernetes(t *testing.T) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(deployed(t, "kubernetes.yaml"))))
	var service corev1.Service
	var set appsv1.StatefulSet
	var network networkingv1.NetworkPolicy
	for _, into := range []any{&service, &network, &set} {
		document, err := documents.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := strict.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%T: %v", into, err)
		}
	}
	if _, err := documents.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more than was checked: %v", err)
	}
	pod := set.Spec.Template
	for name, value := range service.Spec.Selector {
		if pod.Labels[name] != value || set.Spec.Selector.MatchLabels[name] != value {
			t.Errorf("the selector %s=%s does not meet the pod's labels %v", name, value, pod.Labels)
		}
	}
	if set.Spec.ServiceName != service.Name || *set.Spec.Replicas != 1 {
		t.Errorf("set of service %q with %d replicas", set.Spec.ServiceName, *set.Spec.Replicas)
	}
	wantServe(t, pod.Spec.Containers[0].Args)
	wantMounts(t, set)
	wantIsolated(t, network, pod)
}

// wantIsolated checks that the policy selects the pod, closes both directions, and opens only named ports to named peers.
func wantIsolated(t *testing.T, network networkingv1.NetworkPolicy, pod corev1.PodTemplateSpec) {
	t.Helper()
	if selector := network.Spec.PodSelector.MatchLabels; len(selector) == 0 || pod.Labels["app"] != selector["app"] {
		t.Errorf("the network policy selects %v, the pod has %v", selector, pod.Labels)
	}
	if !slices.Equal(network.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}) {
		t.Errorf("the network policy is about %v", network.Spec.PolicyTypes)
	}
	var in, out []string
	for _, rule := range network.Spec.Ingress {
		for _, peer := range rule.From {
			if peer.NamespaceSelector == nil || len(peer.NamespaceSelector.MatchLabels) == 0 {
				t.Errorf("let in from anywhere: %+v", peer)
			}
		}
		if len(rule.From) == 0 {
			t.Error("a rule lets everybody in")
		}
		for _, port := range rule.Ports {
			in = append(in, port.Port.String())
			if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port.Port.String() }) {
				t.Errorf("the container has no port %s", port.Port.String())
			}
		}
	}
	for _, rule := range network.Spec.Egress {
		if len(rule.To) == 0 {
			t.Error("a rule lets out to anywhere")
		}
		for _, peer := range rule.To {
			if block := peer.IPBlock; block != nil && len(block.Except) == 0 {
				t.Errorf("%s holds the cloud's metadata", block.CIDR)
			}
		}
		for _, port := range rule.Ports {
			out = append(out, port.Port.String())
		}
	}
	if !slices.Equal(in, []string{"http", "metrics"}) || !slices.Equal(out, []string{"53", "53", "443", "465", "587"}) {
		t.Errorf("open in: %v, out: %v", in, out)
	}
}

// systemd retries a refused start, for example with a full or unmounted disk, without limit: otherwise it would give up after five attempts
// within ten seconds, and the service would stay down after the disk is fixed.
func TestUnitIsNeverGivenUp(t *testing.T) {
	unit, rest, _ := strings.Cut(string(deployed(t, "vigil@.service")), "[Service]")
	if !strings.Contains(unit, "\nStartLimitIntervalSec=0\n") || !strings.Contains(rest, "\nRestart=always\n") {
		t.Error("the unit stays down after some tries")
	}
}

// Memory holds keys and names in clear text: no part of it may reach a disk.
func TestMemoryStaysInMemory(t *testing.T) {
	unit := strings.Split(string(deployed(t, "vigil@.service")), "\n")
	for _, line := range []string{"LimitCORE=0", "MemorySwapMax=0"} {
		if !slices.Contains(unit, line) {
			t.Errorf("the unit lacks %s", line)
		}
	}
	var compose struct {
		Services map[string]struct {
			Memory  string `json:"mem_limit"`
			AndSwap string `json:"memswap_limit"`
			Limits  struct {
				Core *int `json:"core"`
			} `json:"ulimits"`
		} `json:"services"`
	}
	if err := strict.Unmarshal(deployed(t, "compose.yaml"), &compose); err != nil {
		t.Fatal(err)
	}
	if vigil := compose.Services["vigil"]; vigil.Memory == "" || vigil.AndSwap != vigil.Memory || vigil.Limits.Core == nil || *vigil.Limits.Core != 0 {
		t.Errorf("the container may swap or dump: %+v", vigil)
	}
}

// wantMounts checks that every mounted volume exists, and that no container may write outside its mounts or gain rights.
func wantMounts(t *testing.T, set appsv1.StatefulSet) {
	t.Helper()
	pod := set.Spec.Template.Spec
	var volumes []string
	for _, volume := range pod.Volumes {
		volumes = append(volumes, volume.Name)
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		volumes = append(volumes, claim.Name)
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, mount := range container.VolumeMounts {
			if !slices.Contains(volumes, mount.Name) {
				t.Errorf("%s mounts %s, which is none of %v", container.Name, mount.Name, volumes)
			}
		}
		if c := container.SecurityContext; c == nil || !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation {
			t.Errorf("%s is not locked in", container.Name)
		}
	}
}

// Proxy headers without trusted proxies are accepted from any sender, and no address is limited: each file sets both or neither.
func TestProxiesAreNamed(t *testing.T) {
	headers, proxies := regexp.MustCompile(`VIGIL_TRUSTED_PROXY_HEADERS\b`), regexp.MustCompile(`VIGIL_TRUSTED_PROXIES\b["']?(?:: *|=|, *value: *)["']?([0-9a-f.:/]+)`)
	files, setBy := 0, 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && (entry.Name() == "check" || entry.Name() == "helm") { // what the chart sets is looked at once it is rendered
				return fs.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		named := proxies.FindAllSubmatch(content, -1)
		if headers.Match(content) {
			setBy++
		}
		if headers.Match(content) != (len(named) > 0) {
			t.Errorf("%s sets one of VIGIL_TRUSTED_PROXY_HEADERS and VIGIL_TRUSTED_PROXIES", path)
		}
		for _, n := range named {
			if prefix, err := netip.ParsePrefix(string(n[1])); err != nil || prefix.Bits() == 0 {
				t.Errorf("%s trusts %s (%v)", path, n[1], err)
			}
		}
		return nil
	})
	if err != nil || files < 8 || setBy < 2 {
		t.Errorf("of %d files %d name headers (%v)", files, setBy, err)
	}
}

// Each connection uses a file, and 500 files are for the database and the rest: with a lower limit the service accepts fewer connections.
func TestUnitHasFilesForConnections(t *testing.T) {
	settings, err := os.ReadFile("../../internal/config/settings.go")
	if err != nil {
		t.Fatal(err)
	}
	most := number(t, settings, `env:"MAX_CONNECTIONS" envDefault:"(\d+)"`)
	if files := number(t, deployed(t, "vigil@.service"), `(?m)^LimitNOFILE=(\d+)$`); files < most+500 {
		t.Errorf("the unit allows %d files for %d connections", files, most)
	}
}

func number(t *testing.T, content []byte, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(content)
	if found == nil {
		t.Fatalf("nothing is like %s", pattern)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// systemd accepts every unit with the drop-ins of the example's list, at an exposure of at most 2.0 of 10.
func TestUnit(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	units, err := filepath.Glob("../vigil*@.*")
	if err != nil || len(units) != 6 {
		t.Fatalf("%v (%v)", units, err)
	}
	folder, added := t.TempDir(), os.DirFS("../../cmd/fleet/testdata/rendered/machines/10.0.0.12/systemd")
	if found, err := fs.Glob(added, "vigil*@lakeside.service.d/*.conf"); err != nil || len(found) != 5 {
		t.Fatalf("the list adds %v (%v)", found, err)
	}
	if err := os.CopyFS(folder, added); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range units {
		unit := regexp.MustCompile(`/usr/local/bin/(vigil|litestream)`).ReplaceAllString(string(deployed(t, filepath.Base(name))), "/bin/true")
		path := filepath.Join(folder, strings.Replace(filepath.Base(name), "@", "@lakeside", 1))
		if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	wantQuiet(t, analyze, append([]string{"verify", "--man=no"}, paths...)...)
	for _, path := range paths {
		if strings.HasSuffix(path, ".service") {
			run(t, nil, analyze, "security", "--offline=true", "--threshold=20", path)
		}
	}
}

// Units that run with the service's keys have the service's limits of memory, disk and rights.
func TestUnitsAreLockedAlike(t *testing.T) {
	_, locked, found := strings.Cut(string(deployed(t, "vigil@.service")), "# Memory holds keys and names in clear text")
	locked, _, _ = strings.Cut(locked, "\n\n[Install]")
	if !found || strings.Count(locked, "\n") < 30 {
		t.Fatal("the unit has another form")
	}
	for _, name := range []string{"vigil-replica@.service", "vigil-backup@.service", "vigil-verify@.service"} {
		if unit := string(deployed(t, name)); !strings.Contains(unit, strings.TrimSpace(locked)) || !strings.Contains(unit, "User=vigil-%i\n") || !strings.Contains(unit, "UMask=0077\n") {
			t.Errorf("%s may do more than the service", name)
		}
	}
}

func TestCaddyfile(t *testing.T) {
	caddy := program(t, "caddy")
	adapted := run(t, []string{"API_HOST=api.test", "WEBHOOK_HOST=hooks.test", "UPSTREAM=10.0.0.1:8090"}, caddy, "adapt", "--validate", "--config", "../Caddyfile", "--adapter", "caddyfile")
	for _, part := range []string{
		`"api.test"`, `"hooks.test"`, `"10.0.0.1:8090"`, `"protocol_min":"tls1.3"`,
		`"read_timeout":30000000000`, `"read_header_timeout":10000000000`, `"idle_timeout":120000000000`, `"max_header_bytes":16384`,
		`"max_size":1048576`, `"max_size":65536`, `"request_buffers":65536`,
		`"/_/*"`, `"/api/collections/_superusers/*"`, `"/api/collections/pbc_3142635823/*"`,
	} {
		if !strings.Contains(adapted, part) {
			t.Errorf("what Caddy reads in it lacks %s", part)
		}
	}
	run(t, nil, caddy, "fmt", "--diff", "../Caddyfile")
}

// The proxy accepts the output of `vigil fleet render` in place of the example's line.
func TestRenderedProxyLines(t *testing.T) {
	caddy := program(t, "caddy")
	folder := t.TempDir()
	const last = "import practice {$API_HOST:rpm.example.org} {$WEBHOOK_HOST:hooks.rpm.example.org} {$UPSTREAM:127.0.0.1:8090}\n"
	example := string(deployed(t, "Caddyfile"))
	if !strings.HasSuffix(example, last) {
		t.Fatal("the example does not end with its one practice")
	}
	lines, err := os.ReadFile("../../cmd/fleet/testdata/rendered/machines/10.0.0.11/practices.caddy")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"Caddyfile": []byte(strings.TrimSuffix(example, last) + "import practices.caddy\n"), "practices.caddy": lines} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	adapted := run(t, nil, caddy, "adapt", "--validate", "--config", filepath.Join(folder, "Caddyfile"), "--adapter", "caddyfile")
	for _, part := range []string{`"elm-street.rpm.example.org"`, `"elm-street-hooks.rpm.example.org"`, `"127.0.0.1:8101"`, `"oak-hill.rpm.example.org"`, `"127.0.0.1:8102"`} {
		if !strings.Contains(adapted, part) {
			t.Errorf("what Caddy reads lacks %s", part)
		}
	}
}

func TestLitestream(t *testing.T) {
	litestream := program(t, "litestream")
	for _, replica := range []string{"file:///srv/replica", "s3://bucket/practice"} {
		scheme, _, _ := strings.Cut(replica, ":")
		listed := run(t, []string{"VIGIL_DATA=/srv/vigil", "REPLICA_URL=" + replica}, litestream, "databases", "-config", "../litestream.yml")
		if !strings.Contains(listed, "/srv/vigil/data.db") || !strings.Contains(listed, scheme) {
			t.Errorf("what Litestream reads in it:\n%s", listed)
		}
	}
}

// run runs a tool that must succeed.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}

func wantQuiet(t *testing.T, name string, args ...string) {
	t.Helper()
	if said := run(t, nil, name, args...); strings.TrimSpace(said) != "" {
		t.Errorf("%s %v:\n%s", filepath.Base(name), args, said)
	}
}
