package registry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/sirupsen/logrus"
)

// redirectLogs sends distribution's logs, which use a global logger, to log. It keeps only errors
// of the registry itself: no access logs and no invalid requests.
func redirectLogs(log *slog.Logger) {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.ErrorLevel)
	logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{logrus.ErrorLevel: {redirect{log}}})
}

type redirect struct{ log *slog.Logger }

// Levels implements logrus.Hook.
func (redirect) Levels() []logrus.Level { return []logrus.Level{logrus.ErrorLevel} }

// Fire implements logrus.Hook. It drops the fields that clients control, except the repository.
func (p redirect) Fire(e *logrus.Entry) error {
	if status, ok := e.Data["http.response.status"].(int); ok && status < http.StatusInternalServerError {
		return nil
	}
	args := []any{"message", e.Message}
	for _, key := range []string{"vars.name", "err.message", "err.detail"} {
		if value, ok := e.Data[key]; ok {
			args = append(args, key, fmt.Sprint(value))
		}
	}
	p.log.Error("Registry error", args...)
	return nil
}
