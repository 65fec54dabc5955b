package backup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/backup"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A bucket supports everything that a folder does, below the practice's prefix.
func TestBackupsInBucket(t *testing.T) {
	app := vigiltest.NewApp(t)
	kept := vigiltest.NewBucket(t, "backups")
	kept.Put("other/vigil-20260101T000000Z.tar.gz.age", []byte("of another practice"))
	at, err := backup.OpenBucket(backup.BucketConfig{
		Name: "backups", Region: "us-east-1", Endpoint: kept.URL, AccessKey: vigiltest.BucketKey, Secret: "secret", ForcePathStyle: true, Prefix: "elm-street",
	})
	if err != nil {
		t.Fatal(err)
	}
	store := backup.NewStore(at)
	defer func() { _ = store.Close() }()
	keys := backup.Keys{Ring: ring(t, "first")}
	note(t, app, 2)
	for day := range 3 {
		create(t, app, store, keys, vigiltest.Clock.AddDate(0, 0, day))
	}
	if removed, err := store.Prune(t.Context(), 2, []string{"vigil-20260117T134500Z.tar.gz.age"}); err != nil || removed != 1 {
		t.Errorf("removed %d: %v", removed, err)
	}
	want := []string{"elm-street/vigil-20260116T134500Z.tar.gz.age", "elm-street/vigil-20260117T134500Z.tar.gz.age", "other/vigil-20260101T000000Z.tar.gz.age"}
	if names := slices.Sorted(maps.Keys(kept.Objects())); !slices.Equal(names, want) || kept.OpenUploads() > 0 {
		t.Errorf("in the bucket: %v, unfinished %d", names, kept.OpenUploads())
	}
	newest, err := store.Find(t.Context(), "latest")
	if err != nil || newest.Name != "vigil-20260117T134500Z.tar.gz.age" || newest.Size != int64(len(kept.Objects()[want[1]])) {
		t.Fatalf("newest %+v: %v", newest, err)
	}
	if m, err := backup.Verify(t.Context(), store, keys, newest.Name, t.TempDir(), open); err != nil || m.Counts.AuditEntries != 2 {
		t.Errorf("verified %+v: %v", m, err)
	}
	if err := store.Probe(t.Context()); err != nil || kept.Objects()["elm-street/check"] != nil {
		t.Errorf("the probe: %v", err)
	}
	kept.SetRefusing(true)
	if err := store.Probe(t.Context()); err == nil || strings.Contains(err.Error(), "<") || !strings.Contains(err.Error(), "does not permit this with the access key") {
		t.Errorf("the probe of a bucket that refuses: %v", err)
	}
	if _, _, err := backup.Create(t.Context(), app, store, keys, "test", vigiltest.Clock.AddDate(1, 0, 0)); err == nil {
		t.Error("taken although the bucket refuses")
	}
}
