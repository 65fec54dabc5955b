// Package fleet renders the configuration of many practices from one list: an environment for each service, lines for the proxies, targets for
// Prometheus, values for the Helm chart. It contains no secrets and starts nothing: systemd, Kubernetes and Prometheus do.
package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vigilhealth/vigil/internal/config"
)

// List is the list of practices with their shared defaults. Source: docs/decisions/building.md, "Many practices".
type List struct {
	Domain    string     `yaml:"domain"` // for host names that are not given
	Defaults  Practice   `yaml:"defaults"`
	Practices []Practice `yaml:"practices"`
}

// Practice is one practice. With a machine it is a systemd unit there, otherwise a release of the Helm chart.
type Practice struct {
	Name        string            `yaml:"name"`
	Host        string            `yaml:"host"`         // for the API and the console
	WebhookHost string            `yaml:"webhook_host"` // for the gateways' webhooks
	Machine     string            `yaml:"machine"`      // address at which Prometheus reaches it
	Port        int               `yaml:"port"`         // on the machine's loopback interface
	MetricsPort int               `yaml:"metrics_port"`
	TimeZone    string            `yaml:"time_zone"`
	Version     string            `yaml:"version"`
	Replica     string            `yaml:"replica"` // Litestream's replica URL
	Storage     string            `yaml:"storage"` // volume size, for the chart
	Settings    map[string]string `yaml:"settings"`
}

// Problems lists every error of a list of practices, one per line.
type Problems []string

// Error joins the lines.
func (p Problems) Error() string { return strings.Join(p, "\n") }

// Read parses a list, applies defaults, and validates it.
func Read(text []byte) (List, error) {
	var list List
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return List{}, fmt.Errorf("the list of practices: %w", err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return List{}, errors.New("the list of practices: there is a second document in the file")
	}
	for i := range list.Practices {
		list.Practices[i] = list.complete(list.Practices[i])
	}
	slices.SortFunc(list.Practices, func(a, b Practice) int { return strings.Compare(a.Name, b.Name) })
	if problems := list.problems(); len(problems) > 0 {
		return List{}, problems
	}
	return list, nil
}

// metricsPortOffset is the default distance of a practice's metrics port from its port.
const metricsPortOffset = 1000

// complete applies the list's defaults to a practice.
func (l List) complete(p Practice) Practice {
	or := func(into *string, value string) {
		if *into == "" {
			*into = value
		}
	}
	if l.Domain != "" {
		or(&p.Host, p.Name+"."+l.Domain)
		or(&p.WebhookHost, p.Name+"-hooks."+l.Domain)
	}
	or(&p.Machine, l.Defaults.Machine)
	or(&p.TimeZone, l.Defaults.TimeZone)
	or(&p.Version, l.Defaults.Version)
	or(&p.Replica, strings.ReplaceAll(l.Defaults.Replica, "{name}", p.Name))
	or(&p.Storage, l.Defaults.Storage)
	if p.MetricsPort == 0 && p.Port != 0 {
		p.MetricsPort = p.Port + metricsPortOffset
	}
	settings := map[string]string{}
	for name, value := range l.Defaults.Settings {
		settings[name] = strings.ReplaceAll(value, "{name}", p.Name)
	}
	maps.Copy(settings, p.Settings)
	p.Settings = settings
	return p
}

var (
	// namePattern matches a name that is valid for a unit, a user (vigil-…, at most 32 characters) and a release.
	namePattern    = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,24}[a-z0-9])?$`)
	hostPattern    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,62}$`) // valid as an image tag and as a folder
	amountPattern  = regexp.MustCompile(`^[1-9][0-9]*(Gi|Ti)$`)
)

// problems returns the errors of all practices.
func (l List) problems() (found Problems) {
	report := func(p Practice, format string, args ...any) {
		found = append(found, fmt.Sprintf("%q: ", p.Name)+fmt.Sprintf(format, args...))
	}
	if d := l.Defaults; d.Name != "" || d.Host != "" || d.WebhookHost != "" || d.Port != 0 || d.MetricsPort != 0 {
		found = append(found, "defaults: name, hosts and ports are each practice's own")
	}
	if len(l.Practices) == 0 {
		found = append(found, "there are no practices")
	}
	taken := map[string]string{}
	take := func(p Practice, what, value string) {
		if other, is := taken[value]; is {
			report(p, "%s %s is that of %q", what, value, other)
			return
		}
		taken[value] = p.Name
	}
	for _, p := range l.Practices {
		if !namePattern.MatchString(p.Name) {
			report(p, "the name must be small letters, digits and hyphens, beginning with a letter, at most 26")
		}
		take(p, "the name", p.Name)
		for what, value := range map[string]string{"host": p.Host, "webhook_host": p.WebhookHost} {
			if !hostPattern.MatchString(value) {
				report(p, "%s %q is no name of a host; give it, or a domain for all", what, value)
				continue
			}
			take(p, what, value)
		}
		if p.Machine != "" {
			for what, port := range map[string]int{"port": p.Port, "metrics_port": p.MetricsPort} {
				if port < 1024 || port > 65535 {
					report(p, "%s must be from 1024 to 65535 and is %d", what, port)
					continue
				}
				take(p, what, fmt.Sprintf("%s on %s", fmt.Sprint(port), p.Machine))
			}
		}
		for what, where := range p.destinations() {
			take(p, what, where)
		}
		found = append(found, p.validate()...)
	}
	slices.Sort(found)
	return found
}

// validate returns the errors of one practice on its own.
func (p Practice) validate() (found Problems) {
	report := func(format string, args ...any) {
		found = append(found, fmt.Sprintf("%q: ", p.Name)+fmt.Sprintf(format, args...))
	}
	// A zone may be any text, and would become part of a path and a line.
	if at, err := netip.ParseAddr(p.Machine); p.Machine != "" && (err != nil && !hostPattern.MatchString(p.Machine) || at.Zone() != "") {
		report("machine %q is neither an address nor a name of a host", p.Machine)
	}
	if p.Version != "" && !versionPattern.MatchString(p.Version) {
		report("version %q is none", p.Version)
	}
	if p.Machine == "" && p.Version == "" {
		report("a practice of the chart needs a version: it is the image's tag")
	}
	if p.Storage != "" && !amountPattern.MatchString(p.Storage) {
		report("storage %q must be an amount such as 20Gi", p.Storage)
	}
	if to, err := url.Parse(p.Replica); p.Replica != "" && (err != nil || to.Scheme == "" || to.User != nil || strings.ContainsAny(p.Replica, "\n \"")) {
		report("replica must be an address such as s3://bucket/path, without credentials")
	}
	return append(found, p.settingsProblems()...)
}

// chartSettings are settings that the Helm chart sets in a cluster.
var chartSettings = []string{"VIGIL_TRUSTED_PROXY_HEADERS", "VIGIL_TRUSTED_PROXIES"}

// settingsProblems validates the settings as the service will, except settings from other sources.
func (p Practice) settingsProblems() (found Problems) {
	report := func(text string) { found = append(found, fmt.Sprintf("%q: %s", p.Name, text)) }
	for _, name := range slices.Sorted(maps.Keys(p.Settings)) {
		known, secret := config.LookupSetting(name)
		switch {
		case !known:
			report(name + " is not a setting; check its spelling")
		case secret:
			report(name + " is a secret: it belongs in the practice's own file or Secret, not in a list")
		case p.derived()[name] != "":
			report(name + " follows from the list: leave it out")
		case p.Machine == "" && slices.Contains(chartSettings, name):
			report(name + " is set by the chart, from trustedProxies: leave it out")
		case strings.ContainsAny(p.Settings[name], "\r\n\x00"):
			report(name + " has a line break")
		}
	}
	if len(found) > 0 {
		return found
	}
	var environ []string
	for name, value := range p.environment() {
		if !strings.HasSuffix(name, "_FILE") { // such a file is on the practice's machine
			environ = append(environ, name+"="+value)
		}
	}
	_, err := config.Load(environ)
	problems, ok := errors.AsType[config.Problems](err)
	if err != nil && !ok {
		report(err.Error())
	}
	for _, problem := range problems {
		name, _, _ := strings.Cut(problem, ":")
		_, secret := config.LookupSetting(name)
		_, file := p.Settings[name+"_FILE"]
		if !secret && !file {
			report(problem)
		}
	}
	return found
}
