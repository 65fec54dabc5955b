package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// header is the first line of each file: manual changes would be overwritten.
const header = "# Made by `vigil fleet render` from the list of practices: change that.\n"

// derived returns the settings that the list determines.
func (p Practice) derived() map[string]string {
	settings := map[string]string{
		"VIGIL_ENVIRONMENT":  "production",
		"VIGIL_PUBLIC_URL":   "https://" + p.Host,
		"VIGIL_METRICS_ADDR": "0.0.0.0:9090",
	}
	if p.TimeZone != "" {
		settings["VIGIL_PRACTICE_TIME_ZONE"] = p.TimeZone
	}
	if p.Settings["VIGIL_WAREHOUSE_FORMAT"] != "" {
		settings["VIGIL_WAREHOUSE_PRACTICE"] = p.Name
	}
	if p.Machine != "" {
		settings["VIGIL_METRICS_ADDR"] = net.JoinHostPort(p.Machine, strconv.Itoa(p.MetricsPort))
		settings["VIGIL_TRUSTED_PROXY_HEADERS"] = "X-Forwarded-For"
		settings["VIGIL_TRUSTED_PROXIES"] = "127.0.0.1/32" // the proxy on the same machine
	}
	return settings
}

// environment returns all settings of a practice.
func (p Practice) environment() map[string]string {
	all := p.derived()
	maps.Copy(all, p.Settings)
	return all
}

// Render returns the content of every file by path.
func (l List) Render() (map[string][]byte, error) {
	files := map[string][]byte{}
	var targets []target
	lines := map[string]*bytes.Buffer{}
	for _, p := range l.Practices {
		if p.Machine == "" {
			values, err := p.values()
			if err != nil {
				return nil, err
			}
			files[path.Join("helm", p.Name+".yaml")] = values
			continue
		}
		folder := path.Join("machines", strings.ReplaceAll(p.Machine, ":", "_"))
		env := p.environment()
		env["PORT"] = strconv.Itoa(p.Port)
		files[path.Join(folder, p.Name+".env")] = environmentFile(env)
		if p.Replica != "" {
			files[path.Join(folder, p.Name+".replica.env")] = environmentFile(map[string]string{"REPLICA_URL": p.Replica})
		}
		for name, text := range p.dropIns() {
			files[path.Join(folder, "systemd", name)] = text
		}
		proxy := path.Join(folder, "practices.caddy")
		if lines[proxy] == nil {
			lines[proxy] = bytes.NewBufferString(header)
		}
		fmt.Fprintf(lines[proxy], "import practice %s %s 127.0.0.1:%d\n", p.Host, p.WebhookHost, p.Port)
		targets = append(targets, target{
			Targets: []string{net.JoinHostPort(p.Machine, strconv.Itoa(p.MetricsPort))},
			Labels:  map[string]string{"practice": p.Name},
		})
	}
	for name, text := range lines {
		files[name] = text.Bytes()
	}
	list, err := marshalYAML(targets)
	if err != nil {
		return nil, err
	}
	files["prometheus/practices.yml"] = list
	return files, nil
}

// target is an entry of Prometheus' file_sd_configs.
type target struct {
	Targets []string          `yaml:"targets"`
	Labels  map[string]string `yaml:"labels"`
}

// envEscaper escapes a value for systemd's double quotes.
var envEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// environmentFile formats settings as a systemd EnvironmentFile.
func environmentFile(values map[string]string) []byte {
	text := bytes.NewBufferString(header)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(text, "%s=\"%s\"\n", name, envEscaper.Replace(values[name]))
	}
	return text.Bytes()
}

// dropIns returns the practice's additions to the shared units, by path below /etc/systemd/system.
func (p Practice) dropIns() map[string][]byte {
	files := map[string][]byte{}
	add := func(unit, name, section string) {
		files[path.Join(unit+"@"+p.Name+".service.d", name+".conf")] = []byte(header + "[Service]\n" + section)
	}
	if p.Version != "" { // for every unit that opens the folder: an older version rejects a folder that a newer one has migrated
		for _, unit := range []string{"vigil", "vigil-backup", "vigil-verify"} {
			add(unit, "version", "BindReadOnlyPaths=/usr/local/lib/vigil/"+p.Version+"/vigil:/usr/local/bin/vigil\n")
		}
	}
	if writable := p.writable(); writable != "" {
		for _, unit := range []string{"vigil", "vigil-backup"} {
			add(unit, "folders", writable)
		}
	}
	if p.Replica == "" {
		add("vigil-verify", "no-replica", "ExecStart=\nExecStart=/usr/local/bin/vigil backup verify --dir /var/cache/vigil-verify/%i/backup\n")
	}
	return files
}

// writable returns ReadWritePaths for the folders outside the data folder that the practice writes to. A missing folder does not prevent the service
// from starting; vigil check reports it.
func (p Practice) writable() string {
	var lines strings.Builder
	for _, name := range []string{"VIGIL_BACKUP_FOLDER", "VIGIL_WAREHOUSE_FOLDER", "VIGIL_AUDIT_HEAD_PATH", "VIGIL_LOG_FILE"} {
		at := p.Settings[name]
		if !path.IsAbs(at) {
			continue
		}
		if strings.HasSuffix(name, "_PATH") || strings.HasSuffix(name, "_FILE") {
			at = path.Dir(at)
		}
		fmt.Fprintf(&lines, "ReadWritePaths=\"-%s\"\n", pathEscaper.Replace(at))
	}
	return lines.String()
}

// pathEscaper escapes a path for a unit file, where a percent sign starts a specifier.
var pathEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%")

// chartValues are the values of deploy/helm/vigil.
type chartValues struct {
	Practice    string            `yaml:"practice"`
	Host        string            `yaml:"host"`
	WebhookHost string            `yaml:"webhookHost"`
	Image       chartImage        `yaml:"image"`
	Settings    map[string]string `yaml:"settings"`
	Replica     chartReplica      `yaml:"replica"`
	Storage     *chartStorage     `yaml:"storage,omitempty"`
}

type chartImage struct {
	Tag string `yaml:"tag"`
}

type chartReplica struct {
	Enabled bool   `yaml:"enabled"`
	URL     string `yaml:"url,omitempty"`
}

type chartStorage struct {
	Size string `yaml:"size"`
}

// values returns the practice's values for helm upgrade --install NAME deploy/helm/vigil --values, without the chart's defaults.
func (p Practice) values() ([]byte, error) {
	settings := p.environment()
	for _, chart := range []string{"VIGIL_ENVIRONMENT", "VIGIL_PUBLIC_URL", "VIGIL_METRICS_ADDR"} {
		delete(settings, chart)
	}
	v := chartValues{
		Practice: p.Name, Host: p.Host, WebhookHost: p.WebhookHost, Image: chartImage{p.Version}, Settings: settings,
		Replica: chartReplica{Enabled: p.Replica != "", URL: p.Replica},
	}
	if p.Storage != "" {
		v.Storage = &chartStorage{p.Storage}
	}
	return marshalYAML(v)
}

func marshalYAML(value any) ([]byte, error) {
	text := bytes.NewBufferString(header)
	encoder := yaml.NewEncoder(text)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return text.Bytes(), encoder.Close()
}
