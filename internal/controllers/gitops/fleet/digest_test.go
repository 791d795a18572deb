package fleet

import "testing"

// TestOnlyFilesOfAClusterChangeItsDigest compares the digest of one directory before and after a
// change of the repository.
func TestOnlyFilesOfAClusterChangeItsDigest(t *testing.T) {
	const dev = dirs + "dev"
	outside := repository{dev + "/kustomization.yaml": "resources: [eksa-cluster.yaml, ../../base]\n"}
	for name, tt := range map[string]struct {
		before, change repository
		want           bool
	}{
		"nothing":                         {},
		"another cluster":                 {change: repository{dirs + "prod/eksa-cluster.yaml": "x: 1"}},
		"a directory with a similar name": {change: repository{dev + "2/eksa-cluster.yaml": "x: 1"}},
		"a file above":                    {change: repository{"README.md": "The fleet"}},
		"its spec":                        {change: repository{dev + "/eksa-cluster.yaml": specOf("dev") + "# more"}, want: true},
		"a new file":                      {change: repository{dev + "/more.yaml": "x: 1"}, want: true},
		"an empty file":                   {change: repository{dev + "/more.yaml": ""}, want: true},
		"its add-ons":                     {change: repository{dev + "/addons/a.yaml": "x: 1"}, want: true},
		"content that moves to another file": {
			before: repository{dev + "/a.yaml": "x: 1\n", dev + "/b.yaml": ""}, change: repository{dev + "/a.yaml": "", dev + "/b.yaml": "x: 1\n"}, want: true,
		},
		"a base outside of the directory":                        {before: outside, change: repository{root + "/base/a.yaml": "x: 1"}, want: true},
		"anything, if a kustomization refers to files outside":   {before: outside, change: repository{"README.md": "The fleet"}, want: true},
		"a file of another cluster that refers to files outside": {before: repository{}.with("prod"), change: repository{dirs + "prod/kustomization.yaml": "resources: [../dev]"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := repository{}.with("dev").merge(tt.before)
			before, err := digestOf(files.fs(), dev)
			if err != nil {
				t.Fatal(err)
			}
			after, err := digestOf(files.merge(tt.change).fs(), dev)
			if err != nil || (before != after) != tt.want {
				t.Errorf("digest %s, before %s, error %v; want a change: %t", after, before, err, tt.want)
			}
		})
	}
}

// merge returns the repository with more files.
func (r repository) merge(more repository) repository {
	for name, content := range more {
		r[name] = content
	}
	return r
}
