package userdata

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(mimeMessage)) // the other seeds are in testdata
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := Parse(data, variables())
		if err != nil {
			if len(err.Error()) > 16<<10+2*len(data) {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if problem := Validate(string(data)); problem != "" {
			t.Errorf("Validate rejects what Parse accepts: %s", problem)
		}
		for _, file := range plan.Files {
			if !strings.HasPrefix(file.Path, "/") || file.Mode&^fs.FileMode(0o7777) != 0 {
				t.Errorf("file %q with mode %o", file.Path, file.Mode)
			}
		}
		for _, c := range append(plan.Boot, plan.Commands...) {
			if c.Line == "" && len(c.Words) == 0 && !bytes.Contains(data, []byte("cmd")) && !bytes.Contains(data, []byte("hook")) {
				t.Error("a command that is not in the userdata")
			}
		}
		ShellScript(plan.Commands)
	})
}

func FuzzFill(f *testing.F) {
	f.Add("{{ v1.instance_id }} {{{{ }}}} `") // more are in testdata
	values := map[string]string{KeyVersion: "{{ .controlPlaneEndpoint }}", KeyEndpoint: "`e`", KeyAPIKey: "TOPSECRET", KeyEMLBID: "{{ .apiKey }}"}
	f.Fuzz(func(t *testing.T, in string) {
		got, withheld := Fill(in, values)
		if strings.Contains(got, "TOPSECRET") && !strings.Contains(in, "TOPSECRET") {
			t.Errorf("%q: got %q, which contains the API key", in, got)
		}
		if withheld && !strings.Contains(in, KeyAPIKey) {
			t.Errorf("%q does not ask for the API key", in)
		}
		if !either.MatchString(in) && got != in {
			t.Errorf("%q: got %q, want it unchanged", in, got)
		}
	})
}

func FuzzCheck(f *testing.F) {
	f.Add("#cloud-config\na: &x [*x]\nb: *y\n") // more are in testdata
	f.Fuzz(func(t *testing.T, in string) {
		if got := Check(in); len(got) > 200 {
			t.Errorf("a message of %d characters: %s", len(got), got)
		}
		if got := Validate(in); len(got) > 400 {
			t.Errorf("a message of %d characters: %s", len(got), got)
		}
	})
}
