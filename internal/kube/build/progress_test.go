package build

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	tests := []struct {
		name     string
		terminal bool
		want     string
	}{
		{
			name:     "on a terminal one line is rewritten and cleared at the end",
			terminal: true,
			want:     "\r\x1b[Kit: one (0s)\r\x1b[Kit: three (2s)\r\x1b[Kit: four (1m2s)\r\x1b[K",
		},
		{
			name: "elsewhere a line is added now and then",
			want: "it: one (0s)\nit: four (1m2s)\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, tt.terminal, "it")
			now := p.started
			p.now = func() time.Time { return now }
			p.show("one")
			p.show("two")
			now = now.Add(2 * time.Second)
			p.show("three")
			now = now.Add(time.Minute)
			p.show("four")
			p.end()
			if out.String() != tt.want {
				t.Errorf("got  %q\nwant %q", out.String(), tt.want)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	failed := errors.New("exit status 1")
	tests := []struct {
		name string
		said []string
		want string
	}{
		{"silence adds nothing", nil, "exit status 1"},
		{"what was said is repeated", []string{"a", "b"}, "exit status 1; the go command said:\na\nb"},
		{"a full disk is named", []string{"write x: no space left on device"}, "a disk is full: building Kubernetes needs about 5 GiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := explain(failed, tt.said)
			if !errors.Is(err, failed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to wrap the failure and say %q", err, tt.want)
			}
		})
	}
}

func TestFollowKeepsTheLastLinesThatAreNotProgress(t *testing.T) {
	var text strings.Builder
	for range tailLines {
		text.WriteString("progress\nearly\n")
	}
	text.WriteString("the end\n")
	said := follow(strings.NewReader(text.String()), nil, func(line string) bool { return line == "progress" })
	if len(said) != tailLines || said[tailLines-1] != "the end" || said[0] != "early" {
		t.Errorf("kept %d lines, from %q to %q", len(said), said[0], said[len(said)-1])
	}
}
