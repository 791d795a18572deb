package userdata

import "strings"

// ShellScript joins commands into one script, so that directories and variables last from one to
// the next, as with cloud-init. The exit code is that of the last command; other failures are only
// logged.
func ShellScript(commands []Command) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\nset -E\ntrap 'echo \"failed with exit code $?: ${BASH_COMMAND:0:200}\" >&2' ERR\n")
	for _, c := range commands {
		if len(c.Words) > 0 {
			b.WriteString(quoted(c.Words) + "\n")
			continue
		}
		b.WriteString(strings.TrimRight(c.Line, "\n") + "\n")
	}
	return b.String()
}

// quoted writes words such that a shell reads them back unchanged.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(out, " ")
}
