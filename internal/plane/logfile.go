package plane

import (
	"bytes"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"
)

const (
	logMegabytes = 20
	logBackups   = 3
	tailLines    = 100
	tailLineMax  = 400
)

// logFile writes the output of a component to a rotated file and keeps the last lines in memory for
// status. It never returns an error to the writer, because a full disk must not end a component.
type logFile struct {
	path string
	file *lumberjack.Logger

	mu    sync.Mutex
	lines []string
	rest  []byte
}

func newLogFile(path string) *logFile {
	return &logFile{path: path, file: &lumberjack.Logger{Filename: path, MaxSize: logMegabytes, MaxBackups: logBackups, Compress: true}}
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(p)
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		l.remember(l.rest[:i])
		l.rest = l.rest[i+1:]
	}
	if len(l.rest) > tailLineMax {
		l.rest = l.rest[:tailLineMax]
	}
	l.rest = append([]byte(nil), l.rest...)
	return len(p), nil
}

func (l *logFile) remember(line []byte) {
	if len(line) > tailLineMax {
		line = line[:tailLineMax]
	}
	l.lines = append(l.lines, string(line))
	if len(l.lines) > tailLines {
		l.lines = append([]string(nil), l.lines[len(l.lines)-tailLines:]...)
	}
}

func (l *logFile) tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *logFile) close() { _ = l.file.Close() }
