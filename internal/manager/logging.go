package manager

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Values of --log-format.
const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

// setLogger installs one logger for everything in the process that logs.
func (o Options) setLogger() logr.Logger {
	log := newLogger(os.Stderr, o.format(), o.Verbosity)
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(o.Verbosity)) // the flag accepts an integer
	return log
}

// newLogger logs up to a verbosity; logr's verbosity is slog's level with the sign reversed.
func newLogger(w io.Writer, format string, verbosity int) logr.Logger {
	options := &slog.HandlerOptions{Level: slog.Level(-verbosity), ReplaceAttr: nameLevel}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if format == logText {
		handler = slog.NewTextHandler(w, options)
	}
	if verbosity == 0 {
		handler = frameworkFilter{Handler: handler}
	}
	return logr.FromSlogHandler(handler)
}

// frameworkFilter drops what the framework logs about itself: a hundred lines at every start that
// matter only for debugging. It identifies controller-runtime by its logger's name, and the watches
// of a controller by their source.
type frameworkFilter struct {
	slog.Handler
	watch bool
}

func (q frameworkFilter) Handle(ctx context.Context, record slog.Record) error {
	if record.Level <= slog.LevelInfo && (q.watch || fromFramework(record)) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

func (q frameworkFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	watch := slices.ContainsFunc(attrs, func(attr slog.Attr) bool { return attr.Key == "source" })
	return frameworkFilter{Handler: q.Handler.WithAttrs(attrs), watch: q.watch || watch}
}

func (q frameworkFilter) WithGroup(name string) slog.Handler {
	return frameworkFilter{Handler: q.Handler.WithGroup(name), watch: q.watch}
}

func fromFramework(record slog.Record) bool {
	found := false
	record.Attrs(func(attr slog.Attr) bool {
		found = attr.Key == "logger" && strings.HasPrefix(attr.Value.String(), "controller-runtime/")
		return !found
	})
	return found
}

// nameLevel writes INFO for every verbosity instead of slog's names such as "DEBUG+3".
func nameLevel(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) > 0 || attr.Key != slog.LevelKey {
		return attr
	}
	if level, ok := attr.Value.Any().(slog.Level); ok && level < slog.LevelInfo {
		return slog.String(slog.LevelKey, slog.LevelInfo.String())
	}
	return attr
}

func (o Options) format() string {
	if o.LogFormat != logAuto {
		return o.LogFormat
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		return logText
	}
	return logJSON
}

// etcdLogger returns the logger of the etcd clients of kubeadm control planes, which support no
// other kind.
func (o Options) etcdLogger() *zap.Logger {
	encoding := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "msg",
		EncodeTime: zapcore.RFC3339NanoTimeEncoder, EncodeLevel: zapcore.CapitalLevelEncoder, EncodeDuration: zapcore.StringDurationEncoder,
	}
	encoder := zapcore.NewJSONEncoder(encoding)
	if o.format() == logText {
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.WarnLevel)).Named("etcd-client")
}
