package fleet

import (
	"strings"
	"testing"
)

// Two practices with a shared destination would overwrite each other: all nightly backups start in the same second.
func TestDestinationsAreNotShared(t *testing.T) {
	two := func(defaults, other string) string {
		return "domain: example.org\ndefaults: {version: 1.0.0, " + defaults + "}\npractices:\n" +
			"- {name: a, machine: m.example, port: 8101}\n- {name: b, " + other + "}"
	}
	const beside, elsewhere, cluster = "machine: m.example, port: 8102", "machine: n.example, port: 8101", "storage: 20Gi"
	for name, tt := range map[string]struct{ defaults, other, want string }{
		"folder of backups":       {"settings: {VIGIL_BACKUP_FOLDER: /srv/backups}", beside, `VIGIL_BACKUP_FOLDER /srv/backups on m.example is that of "a"`},
		"the same, otherwise":     {"settings: {VIGIL_BACKUP_FOLDER: /srv/backups}", beside + ", settings: {VIGIL_BACKUP_FOLDER: /srv/x/../backups/}", "VIGIL_BACKUP_FOLDER"},
		"folder of each":          {"settings: {VIGIL_BACKUP_FOLDER: '/srv/{name}'}", beside, ""},
		"folder of each machine":  {"settings: {VIGIL_BACKUP_FOLDER: /srv/backups}", elsewhere, ""},
		"folder of each volume":   {"settings: {VIGIL_BACKUP_FOLDER: /data/kept}", cluster, ""},
		"bucket":                  {"settings: {VIGIL_BACKUP_S3_BUCKET: kept}", elsewhere, `the bucket kept, without a VIGIL_BACKUP_S3_PREFIX of its own, is that of "a"`},
		"bucket, one prefix":      {"settings: {VIGIL_BACKUP_S3_BUCKET: kept, VIGIL_BACKUP_S3_PREFIX: all}", cluster, "VIGIL_BACKUP_S3_PREFIX"},
		"bucket, prefix of each":  {"settings: {VIGIL_BACKUP_S3_BUCKET: kept, VIGIL_BACKUP_S3_PREFIX: '{name}'}", beside, ""},
		"bucket of each endpoint": {"settings: {VIGIL_BACKUP_S3_BUCKET: kept}", beside + ", settings: {VIGIL_BACKUP_S3_ENDPOINT: 'https://s3.example'}", ""},
		"a folder unused":         {"settings: {VIGIL_BACKUP_FOLDER: /srv/backups, VIGIL_BACKUP_S3_BUCKET: kept, VIGIL_BACKUP_S3_PREFIX: '{name}'}", beside, ""},
		"replica":                 {"replica: 's3://r/all'", cluster, `replica s3://r/all is that of "a"`},
		"replica of each":         {"replica: 's3://r/{name}'", beside, ""},
		"audit heads":             {"settings: {VIGIL_AUDIT_HEAD_PATH: /mnt/heads.txt}", beside, "VIGIL_AUDIT_HEAD_PATH"},
		"log":                     {"settings: {VIGIL_LOG_FILE: /var/log/vigil.log}", beside, "VIGIL_LOG_FILE"},
		"warehouse":               {"settings: {VIGIL_WAREHOUSE_FORMAT: csv, VIGIL_WAREHOUSE_FOLDER: /srv/warehouse}", beside, ""},
	} {
		_, err := Read([]byte(two(tt.defaults, tt.other)))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), `"b": `) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
