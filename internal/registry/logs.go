package registry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/sirupsen/logrus"
)

// passOnLogs has distribution, which knows one logger for the whole process, say what is wrong with the registry and nothing else: no
// accesses, and no requests that were wrong themselves.
func passOnLogs(log *slog.Logger) {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.ErrorLevel)
	logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{logrus.ErrorLevel: {passOn{log}}})
}

type passOn struct{ log *slog.Logger }

// Levels implements logrus.Hook.
func (passOn) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

// Fire implements logrus.Hook. Of the fields, those are left out that a client decides on, but for the repository.
func (p passOn) Fire(e *logrus.Entry) error {
	if status, ok := e.Data["http.response.status"].(int); ok && status < http.StatusInternalServerError {
		return nil
	}
	args := []any{"what", e.Message}
	for _, key := range []string{"vars.name", "err.message", "err.detail"} {
		if value, ok := e.Data[key]; ok {
			args = append(args, key, fmt.Sprint(value))
		}
	}
	p.log.Error("The registry has a problem", args...)
	return nil
}
