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

// Output is the value of the -o flag: "" for people, json or yaml for programs.
type Output string

// AddFlag adds -o to a command.
func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "output `format`: json or yaml (default: a table)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// String implements pflag.Value.
func (o *Output) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *Output) Set(s string) error {
	if s != "json" && s != "yaml" {
		return fmt.Errorf("%q is not an output format: use json or yaml", s)
	}
	*o = Output(s)
	return nil
}

// Print writes v in the format, or calls table if there is none.
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

// Table writes aligned columns with a header.
func Table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 4, 3, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tw, breaks.ReplaceAllString(strings.Join(row, "\t"), " "))
	}
	return tw.Flush()
}

// breaks matches line breaks within a cell.
var breaks = regexp.MustCompile(` *\n *`)
