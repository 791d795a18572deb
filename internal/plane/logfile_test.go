package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTailReturnsTheLastLines(t *testing.T) {
	l := newLogFile(filepath.Join(t.TempDir(), "x.log"))
	defer l.close()
	for i := range 200 {
		fmt.Fprintf(l, "line %d\nhal", i)
		fmt.Fprintf(l, "f %d\n", i)
	}
	fmt.Fprint(l, strings.Repeat("x", 10_000))
	tail := l.tail()
	if len(tail) != tailLines || tail[len(tail)-1] != "half 199" || tail[len(tail)-2] != "line 199" {
		t.Errorf("tail = %q", tail)
	}
}

func TestUnwritableLogIsIgnored(t *testing.T) {
	l := newLogFile(filepath.Join(os.DevNull, "x.log"))
	defer l.close()
	if n, err := fmt.Fprintln(l, "hello"); err != nil || n != 6 {
		t.Errorf("write = %d, %v; want 6 and no error", n, err)
	}
	if diff := l.tail(); len(diff) != 1 || diff[0] != "hello" {
		t.Errorf("tail = %q, want hello", diff)
	}
}
