package cmd

import "testing"

// The limit leaves open files for the database, even if there are few.
func TestConnectionLimit(t *testing.T) {
	for _, test := range []struct {
		connections int
		files       uint64
		want        int
	}{
		{4096, 524_288, 4096}, {4096, 4596, 4096}, {4096, 4595, 4095}, {4096, 1024, 524}, {4096, 256, 1}, {0, 20_000, 19_500}, {0, 1 << 63, 1<<31 - 500},
	} {
		if got := maxConnections(test.connections, test.files); got != test.want {
			t.Errorf("%d connections with %d files: %d, want %d", test.connections, test.files, got, test.want)
		}
	}
}
