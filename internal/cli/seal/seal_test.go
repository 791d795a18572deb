package seal

import (
	"bytes"
	stdio "io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/drover-dev/drover/internal/cli/ui"
)

func textFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPassphrase(t *testing.T) {
	never := func(*ui.IO) (string, error) { panic("a passphrase was asked for") }
	for name, tt := range map[string]struct {
		file, environment string
		want, problem     string
	}{
		"a file":                           {file: "correct horse\nbattery\n", want: "correct horse"},
		"a file with Windows line ends":    {file: "correct horse\r\n", want: "correct horse"},
		"a file without a line end":        {file: "correct horse", want: "correct horse"},
		"an empty first line":              {file: "\ncorrect horse\n", problem: "the passphrase is empty"},
		"the environment":                  {environment: "staple", want: "staple"},
		"a file precedes the environment":  {file: "correct horse\n", environment: "staple", want: "correct horse"},
		"neither, and no terminal to read": {problem: "use --passphrase-file or $DROVER_PASSPHRASE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DROVER_PASSPHRASE", tt.environment)
			f := &Flags{}
			if tt.file != "" {
				f.passphraseFile = textFile(t, tt.file)
			}
			got, err := f.passphrase(&ui.IO{}, never)
			if got != tt.want || (tt.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tt.want, tt.problem)
			}
		})
	}
}

func TestMissingPassphraseFile(t *testing.T) {
	f := &Flags{passphraseFile: filepath.Join(t.TempDir(), "none")}
	if _, err := f.passphrase(&ui.IO{}, nil); err == nil || !strings.Contains(err.Error(), "reading the passphrase") {
		t.Errorf("got error %v, want one that contains %q", err, "reading the passphrase")
	}
}

// opens reports whether the flags of restore decrypt what those of backup have encrypted.
func opens(t *testing.T, seal, open Flags) bool {
	t.Helper()
	recipients, err := seal.Recipients(&ui.IO{})
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stdio.WriteString(w, "content"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	identities, err := open.Identities(&ui.IO{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := age.Decrypt(&sealed, identities...)
	if err != nil {
		return false
	}
	content, err := stdio.ReadAll(r)
	return err == nil && string(content) == "content"
}

func TestBackupRecipients(t *testing.T) {
	ours, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	seal := Flags{recipients: []string{ours.Recipient().String()}}
	if !opens(t, seal, Flags{identityFile: textFile(t, "# a comment\n"+ours.String()+"\n")}) {
		t.Error("the recipient can't open it")
	}
	if opens(t, seal, Flags{identityFile: textFile(t, other.String()+"\n")}) {
		t.Error("another identity opens it")
	}
	phrase := textFile(t, "correct horse\n")
	if !opens(t, Flags{passphraseFile: phrase}, Flags{passphraseFile: phrase}) {
		t.Error("the passphrase doesn't open it")
	}
}

func TestInvalidRecipientsAreRejected(t *testing.T) {
	for name, tt := range map[string]struct {
		flags Flags
		want  string
	}{
		"no recipient":                 {Flags{recipients: []string{"somebody"}}, `--recipient "somebody" is not an age recipient`},
		"a recipient and a passphrase": {Flags{recipients: []string{"age1"}, passphraseFile: "file"}, "--recipient and --passphrase-file are mutually exclusive"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.flags.Recipients(&ui.IO{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || ui.Report(stdio.Discard, err) != ui.ExitUsage {
				t.Errorf("got error %v, want a usage error with %q", err, tt.want)
			}
		})
	}
}
