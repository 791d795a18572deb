package gitops

import (
	"fmt"
	"strings"
)

// Text returns the report for a terminal.
func (r *Report) Text() string {
	var out strings.Builder
	if len(r.Clusters) == 0 {
		fmt.Fprintf(&out, "No cluster changes below %s.\n", r.Path)
	}
	for _, c := range r.Clusters {
		fmt.Fprintf(&out, "%s: %s (%s)\n", printable(c.Cluster), c.Action, printable(c.File))
		if c.MovedFrom != "" {
			fmt.Fprintf(&out, "  moved from %s\n", printable(c.MovedFrom))
		}
		for _, f := range c.Fields {
			fmt.Fprintf(&out, "  %s %s: %s -> %s\n", printable(f.Object), printable(f.Path), orNone(f.Old), orNone(f.New))
		}
		writeMore(&out, "  and %d more fields\n", c.MoreFields)
		for _, name := range c.Files {
			fmt.Fprintf(&out, "  file %s\n", printable(name))
		}
		writeMore(&out, "  and %d more files\n", c.MoreFiles)
	}
	return out.String()
}

// Markdown returns the report for a pull request.
func (r *Report) Markdown() string {
	if len(r.Clusters) == 0 {
		return fmt.Sprintf("No cluster changes below %s.\n", code(r.Path))
	}
	var out strings.Builder
	for _, c := range r.Clusters {
		fmt.Fprintf(&out, "### Cluster %s %s\n\n%s", code(c.Cluster), c.Action, code(c.File))
		if c.MovedFrom != "" {
			fmt.Fprintf(&out, ", moved from %s", code(c.MovedFrom))
		}
		out.WriteString("\n\n")
		c.writeTable(&out)
		c.writeFiles(&out)
	}
	return out.String()
}

func (c *ClusterChange) writeTable(out *strings.Builder) {
	if len(c.Fields) == 0 {
		return
	}
	out.WriteString("| object | field | before | after |\n|---|---|---|---|\n")
	for _, f := range c.Fields {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", cell(f.Object), cell(f.Path), cell(orNone(f.Old)), cell(orNone(f.New)))
	}
	out.WriteString("\n")
	writeMore(out, "And %d more fields.\n\n", c.MoreFields)
}

func (c *ClusterChange) writeFiles(out *strings.Builder) {
	if len(c.Files) == 0 {
		return
	}
	out.WriteString("Other files:\n\n")
	for _, name := range c.Files {
		fmt.Fprintf(out, "- %s\n", code(name))
	}
	out.WriteString("\n")
	writeMore(out, "And %d more files.\n\n", c.MoreFiles)
}

func writeMore(out *strings.Builder, format string, count int) {
	if count > 0 {
		fmt.Fprintf(out, format, count)
	}
}

func orNone(value string) string {
	if value == "" {
		return "(none)"
	}
	return printable(value)
}

// code returns text as a code span, which neither mentions people nor links.
func code(text string) string {
	text = printable(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}

// cell returns text as a code span in a table.
func cell(text string) string { return strings.ReplaceAll(code(text), "|", `\|`) }
