package metal

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// rateWindow is the period of a rate limit.
const rateWindow = time.Minute

// limits counts the calls of each project and reports the remaining ones to clients.
type limits struct {
	perWindow int
	now       func() time.Time

	mu    sync.Mutex
	reset time.Time
	used  map[string]int
}

// admit counts a call, sets the headers, and reports whether the call is within the limit.
func (l *limits) admit(w http.ResponseWriter, project string) bool {
	l.mu.Lock()
	l.roll()
	l.used[project]++
	allowed := l.used[project] <= l.perWindow
	l.mu.Unlock()
	l.head(w, project)
	return allowed
}

func (l *limits) roll() {
	if now := l.now(); !now.Before(l.reset) {
		l.reset, l.used = now.Add(rateWindow), map[string]int{}
	}
}

// head sets the rate headers.
func (l *limits) head(w http.ResponseWriter, project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.roll()
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(l.perWindow))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, l.perWindow-l.used[project])))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(l.reset.Unix(), 10))
}
