package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output is the value of the -o flag: "" for people, json or yaml for
// programs.
type Output string

// AddFlag puts -o on a command.
func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "output `format`: json or yaml; a table if not given")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// String, Set and Type make Output a flag value.
func (o *Output) String() string { return string(*o) }

// Type is shown in help.
func (o *Output) Type() string { return "format" }

// Set accepts the formats that exist.
func (o *Output) Set(s string) error {
	if s != "json" && s != "yaml" {
		return fmt.Errorf("%q is not an output format: use json or yaml", s)
	}
	*o = Output(s)
	return nil
}

// Print writes v in the chosen format, or calls table when a person asks.
func (o Output) Print(w io.Writer, v any, table func(io.Writer) error) error {
	switch o {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	case "yaml":
		data, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	default:
		return table(w)
	}
}

// Table writes rows below a header, in columns.
func Table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 3, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tw, breaks.ReplaceAllString(strings.Join(row, "\t"), " "))
	}
	return tw.Flush()
}

// breaks are those within a cell: a row is a line.
var breaks = regexp.MustCompile(` *\n *`)
