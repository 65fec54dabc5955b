package fleet

import (
	"iter"
	"path"
	"strings"
)

// destinations returns the destinations that a practice writes to beside its data folder, each with its setting. Practices must not share one: backups
// created in the same second have the same name, retention removes the old backups of both, and two databases cannot share a replica. Warehouse
// exports may share a destination because their paths contain the practice.
func (p Practice) destinations() iter.Seq2[string, string] {
	return func(yield func(what, where string) bool) {
		if p.Replica != "" && !yield("replica", strings.TrimRight(p.Replica, "/")) {
			return
		}
		files := []string{"VIGIL_AUDIT_HEAD_PATH", "VIGIL_LOG_FILE"}
		if bucket := p.Settings["VIGIL_BACKUP_S3_BUCKET"]; bucket == "" {
			files = append(files, "VIGIL_BACKUP_FOLDER")
		} else if !yield(p.bucket(bucket)) {
			return
		}
		if p.Machine == "" {
			return // files are on the pod's own volume
		}
		for _, name := range files {
			if at := p.Settings[name]; at != "" && !yield(name, path.Clean(at)+" on "+p.Machine) {
				return
			}
		}
	}
}

func (p Practice) bucket(name string) (what, where string) {
	at := strings.TrimRight(p.Settings["VIGIL_BACKUP_S3_ENDPOINT"], "/")
	if at != "" {
		name += " at " + at
	}
	if part := strings.Trim(p.Settings["VIGIL_BACKUP_S3_PREFIX"], "/"); part != "" {
		return "VIGIL_BACKUP_S3_PREFIX", part + " of the bucket " + name
	}
	return "the bucket", name + ", without a VIGIL_BACKUP_S3_PREFIX of its own,"
}
