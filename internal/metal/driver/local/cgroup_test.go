package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitsUseTheFilesOfTheCgroupVersion(t *testing.T) {
	two := limits{cpus: 2, memory: 1 << 30}
	for name, tt := range map[string]struct {
		limits   limits
		hostCPUs int
		want     map[string]string
	}{
		"version 2":                      {two, 8, map[string]string{"memory.max": "1073741824", "cpu.max": "200000 100000"}},
		"version 1, memory":              {two, 8, map[string]string{"memory.limit_in_bytes": "1073741824"}},
		"version 1, CPU":                 {two, 8, map[string]string{"cpu.cfs_quota_us": "200000"}},
		"as many CPUs as the host has":   {two, 2, map[string]string{"cpu.cfs_quota_us": ""}},
		"no limits":                      {limits{}, 2, map[string]string{"memory.max": "", "cpu.max": ""}},
		"a hierarchy that limits others": {two, 8, map[string]string{"blkio.weight": ""}},
		"processes":                      {limits{}, 8, map[string]string{"pids.max": "16384"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file := range tt.want {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.limits.apply(dir, tt.hostCPUs); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
				got[e.Name()] = string(data)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
