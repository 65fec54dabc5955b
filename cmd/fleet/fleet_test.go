package fleet

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func read(t *testing.T, text string) List {
	t.Helper()
	list, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func rendering(t *testing.T, list List) map[string][]byte {
	t.Helper()
	files, err := list.Render()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The example in deploy renders to the golden files, which deploy/check validates with the tools that read them.
func TestGoldenExample(t *testing.T) {
	example, err := os.ReadFile("../../deploy/practices.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := rendering(t, read(t, string(example)))
	folder := "testdata/rendered"
	if *update {
		if _, err := Write(folder, files, false); err != nil {
			t.Fatal(err)
		}
	}
	done, err := Write(folder, files, true)
	if err != nil || len(done.Written)+len(done.Removed) > 0 || len(files) != 21 {
		t.Errorf("%d files; of testdata %v and %v are otherwise: make golden (%v)", len(files), done.Written, done.Removed, err)
	}
}

func TestRenderIgnoresListOrder(t *testing.T) {
	practice := func(name string, port int) string {
		return fmt.Sprintf("\n- {name: %s, machine: 10.0.0.1, port: %d}", name, port)
	}
	head := "domain: example.org\npractices:"
	one, other := rendering(t, read(t, head+practice("b", 8101)+practice("a", 8102))), rendering(t, read(t, head+practice("a", 8102)+practice("b", 8101)))
	if !maps.EqualFunc(one, other, bytes.Equal) {
		t.Error("another order makes other files")
	}
}

func TestValuesAreQuoted(t *testing.T) {
	list := read(t,
		"domain: example.org\npractices:\n- {name: a, machine: 'fd00::1', port: 8101, settings: {VIGIL_SMTP_USERNAME: 'a\"b\\c $d `e` #f'}}")
	env := string(rendering(t, list)["machines/fd00__1/a.env"])
	for _, line := range []string{"VIGIL_SMTP_USERNAME=\"a\\\"b\\\\c \\$d \\`e\\` #f\"", `VIGIL_METRICS_ADDR="[fd00::1]:9101"`, `PORT="8101"`} {
		if !slices.Contains(strings.Split(env, "\n"), line) {
			t.Errorf("%s is not in:\n%s", line, env)
		}
	}
}

// A practice with warehouse exports gets its own name in them; others have none.
func TestWarehouseExportsHavePracticeName(t *testing.T) {
	list := read(t, in("{name: a, machine: m.example, port: 8101, settings: {VIGIL_WAREHOUSE_FORMAT: parquet, VIGIL_WAREHOUSE_FOLDER: /srv}}, {name: b, machine: m.example, port: 8102}"))
	files := rendering(t, list)
	if env := string(files["machines/m.example/a.env"]); !strings.Contains(env, `VIGIL_WAREHOUSE_PRACTICE="a"`) {
		t.Error(env)
	}
	if env := string(files["machines/m.example/b.env"]); strings.Contains(env, "WAREHOUSE") {
		t.Error(env)
	}
}

// Units permit writing to the data folder only, so other destinations are opened. A practice without a replica verifies none, and its version applies
// to all of its units.
func TestRenderUnits(t *testing.T) {
	files := rendering(t, read(t, in("{name: a, machine: m.example, port: 8101, version: 1.1.0, settings: {VIGIL_BACKUP_FOLDER: '/srv/back ups/50%', VIGIL_AUDIT_HEAD_PATH: /mnt/heads/a.txt}}, "+
		"{name: b, machine: m.example, port: 8102, replica: 's3://b/b'}")))
	const folder = "machines/m.example/systemd/"
	opened := "[Service]\nReadWritePaths=\"-/srv/back ups/50%%\"\nReadWritePaths=\"-/mnt/heads\"\n"
	other := "[Service]\nBindReadOnlyPaths=/usr/local/lib/vigil/1.1.0/vigil:/usr/local/bin/vigil\n"
	for name, want := range map[string]string{
		"vigil@a.service.d/folders.conf": opened, "vigil-backup@a.service.d/folders.conf": opened,
		"vigil@a.service.d/version.conf": other, "vigil-backup@a.service.d/version.conf": other, "vigil-verify@a.service.d/version.conf": other,
		"vigil-verify@a.service.d/no-replica.conf": "[Service]\nExecStart=\nExecStart=/usr/local/bin/vigil backup verify --dir /var/cache/vigil-verify/%i/backup\n",
	} {
		if got := string(files[folder+name]); got != header+want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range files {
		if strings.Contains(name, "@b.service.d") {
			t.Errorf("%s is there without need", name)
		}
	}
}

// Errors in a list are returned before anything is rendered, and each names its practice.
func TestProblems(t *testing.T) {
	for what, test := range map[string]struct{ list, says string }{
		"nothing":                 {"", "it is empty"},
		"no practices":            {"domain: example.org", "there are no practices"},
		"a misspelt field":        {"domain: example.org\npractices: [{name: a, machin: x}]", "field machin not found"},
		"two documents":           {"domain: example.org\n---\na: 1", "second document"},
		"the same name":           {in("{name: a, machine: m.example, port: 8101}, {name: a, machine: n.example, port: 8101, host: b.example, webhook_host: c.example}"), `"a": the name a is that of "a"`},
		"the same port":           {in("{name: a, machine: m.example, port: 8101}, {name: b, machine: m.example, port: 8101}"), `"b": port 8101 on m.example is that of "a"`},
		"a port of metrics":       {in("{name: a, machine: m.example, port: 8101}, {name: b, machine: m.example, port: 9101}"), `9101 on m.example is that of`},
		"the same host":           {in("{name: a, machine: m.example, port: 8101}, {name: b, machine: m.example, port: 8102, host: a.example.org}"), `"b": host a.example.org is that of "a"`},
		"hooks of another":        {in("{name: a, machine: m.example, port: 8101}, {name: a-hooks, machine: m.example, port: 8102}"), `a-hooks.example.org is that of`},
		"no host":                 {"practices: [{name: a, machine: m.example, port: 8101}]", `"a": host "" is no name of a host`},
		"no port":                 {in("{name: a, machine: m.example}"), `"a": port must be from 1024 to 65535 and is 0`},
		"a long name":             {in("{name: abcdefghijklmnopqrstuvwxyz1, machine: m.example, port: 8101}"), "at most 26"},
		"path outside the folder": {in("{name: ../a, machine: m.example, port: 8101}"), "small letters"},
		"a machine":               {in("{name: a, machine: ../etc, port: 8101}"), `machine "../etc" is neither`},
		"a path as zone":          {in("{name: a, machine: 'fe80::1%/../../../etc', port: 8101}"), "is neither"},
		"two lines as zone":       {in("{name: a, machine: \"fe80::1%x\\nVIGIL_ENVIRONMENT=development\", port: 8101}"), "is neither"},
		"no version":              {in("{name: a}"), "needs a version"},
		"a path as version":       {in("{name: a, machine: m.example, port: 8101, version: ../../x}"), "is none"},
		"storage":                 {in("{name: a, version: 1.0.0, storage: 20GB}"), "storage"},
		"credentials":             {in("{name: a, version: 1.0.0, replica: 's3://key:secret@bucket/a'}"), "without credentials"},
		"a secret":                {in("{name: a, version: 1.0.0, settings: {VIGIL_ENCRYPTION_KEYS: 'k:x'}}"), `"a": VIGIL_ENCRYPTION_KEYS is a secret`},
		"another secret":          {in("{name: a, version: 1.0.0, settings: {VIGIL_EMR_PRIVATE_KEY: x}}"), "VIGIL_EMR_PRIVATE_KEY is a secret"},
		"no setting":              {in("{name: a, version: 1.0.0, settings: {VIGIL_SMPT_HOST: x}}"), "VIGIL_SMPT_HOST is not a setting"},
		"a derived setting":       {in("{name: a, version: 1.0.0, settings: {VIGIL_PUBLIC_URL: 'https://x.example'}}"), "follows from the list"},
		"a chart's setting":       {in("{name: a, version: 1.0.0, settings: {VIGIL_TRUSTED_PROXIES: 10.0.0.0/8}}"), "is set by the chart"},
		"two lines":               {in("{name: a, version: 1.0.0, settings: {VIGIL_SMTP_HOST: \"a\\nVIGIL_X=1\"}}"), "line break"},
		"a wrong value":           {in("{name: a, version: 1.0.0, settings: {VIGIL_BACKUP_KEEP: many}}"), `"a": VIGIL_BACKUP_KEEP: must be`},
		"a wrong zone":            {in("{name: a, version: 1.0.0, time_zone: Mars/Base}"), "VIGIL_PRACTICE_TIME_ZONE"},
		"defaults' ports":         {"defaults: {port: 1}\n" + in("{name: a, version: 1.0.0}"), "each practice's own"},
	} {
		if _, err := Read([]byte(test.list)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", what, err, test.says)
		} else if strings.Contains(err.Error(), "k:x") {
			t.Errorf("%s: a secret is shown: %v", what, err)
		}
	}
}

func in(practices string) string { return "domain: example.org\npractices: [" + practices + "]" }

// A setting that is half of a pair with a secret is accepted without the secret, and so are files of another machine.
func TestSecretHalfOfPairIsOptional(t *testing.T) {
	read(t, in("{name: a, version: 1.0.0, settings: {VIGIL_VAPID_PUBLIC_KEY_FILE: /run/vapid.pub, VIGIL_ENCRYPTION_KEYS_FILE: /run/keys, VIGIL_TLS_CERT_FILE: /etc/c.pem, VIGIL_TLS_KEY_FILE: /etc/k.pem}}"))
}

func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "rendered")
	one := map[string][]byte{"a/x": []byte("1"), "b": []byte("2")}
	if done, err := Write(folder, one, true); err != nil || len(done.Written) != 2 {
		t.Errorf("%v (%v)", done, err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("a look made the folder")
	}
	if _, err := Write(folder, one, false); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(folder, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := Write(folder, map[string][]byte{"b": []byte("2"), "c": []byte("3")}, false)
	if err != nil || !slices.Equal(done.Written, []string{"c"}) || !slices.Equal(done.Removed, []string{"a/x"}) {
		t.Errorf("%v (%v)", done, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "a/x")); err == nil {
		t.Error("what is not wanted any more is still there")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a foreign file was removed: %v", err)
	}
	if done, err := Write(folder, map[string][]byte{"b": []byte("2"), "c": []byte("3")}, true); err != nil || len(done.Written)+len(done.Removed) > 0 {
		t.Errorf("the second time %v (%v)", done, err)
	}
}

func TestWriteRefusesForeignFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(folder, map[string][]byte{"b": nil}, false); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("%v", err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, manifestName), []byte("../"+filepath.Base(filepath.Dir(outside))+"/outside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(folder, map[string][]byte{"b": nil}, false); err == nil || !strings.Contains(err.Error(), "not in the folder") {
		t.Errorf("%v", err)
	}
}
