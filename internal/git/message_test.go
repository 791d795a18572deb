package git

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	for name, test := range map[string]struct {
		message Message
		want    string
	}{
		"a subject":       {Message{Subject: "Create cluster dev"}, "Create cluster dev\n"},
		"everything":      {Message{"Create", "Because.\n\nReally.", "jane", "drover create"}, "Create\n\nBecause.\n\nReally.\n\nDrover-Command: drover create\nDrover-On-Behalf-Of: jane\n"},
		"lines in fields": {Message{"a\nb", "", "c\r\nDrover-Command: d", "e\u2028f"}, "a b\n\nDrover-Command: e f\nDrover-On-Behalf-Of: c Drover-Command: d\n"},
		"trailers in the body": {
			Message{Subject: "a", Body: "b\n\ndrover-command: x\nDrover-On-Behalf-Of : y\n"},
			"a\n\nb\n\n    drover-command: x\n    Drover-On-Behalf-Of : y\n",
		},
		"control characters": {Message{Subject: "a\x00\x1b[31mb", Body: "c\x1b\x07\r\nd\te  \n"}, "a [31mb\n\nc\nd\te\n"},
		"a long subject":     {Message{Subject: strings.Repeat("ä", 72)}, strings.Repeat("ä", 34) + "…\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.message.render()
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v: %s", err, diff)
			}
		})
	}
	if _, err := (Message{Subject: " \n\x00"}).render(); err == nil {
		t.Error("no error for a message without subject")
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("a", "b\nDrover-Command: c", "d\ne", "f")
	f.Fuzz(func(t *testing.T, subject, body, person, command string) {
		got, err := Message{subject, body, person, command}.render()
		if err != nil {
			return
		}
		first, rest, _ := strings.Cut(got, "\n")
		if len(first) > maxSubject || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r") {
			t.Errorf("message %q", got)
		}
		if n := strings.Count(rest, "\n"+trailerPerson+":"); n > 1 || n == 1 && oneLine(person) == "" {
			t.Errorf("message %q has a forged trailer", got)
		}
	})
}
