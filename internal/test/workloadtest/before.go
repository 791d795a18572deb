package workloadtest

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// Before puts a proxy before an API server until the test ends, and returns a configuration for it.
// around wraps the transport to the server; an unreachable server looks like a broken connection.
func Before(t testing.TB, to *rest.Config, around func(*httputil.ReverseProxy) http.Handler) *rest.Config {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(to)
	if err != nil {
		t.Fatal(err)
	}
	silent := log.New(io.Discard, "", 0) // tests include clients that disconnect
	web := httptest.NewUnstartedServer(around(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
		FlushInterval: -1, // flush watch events immediately
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:      silent,
	}))
	web.EnableHTTP2 = true
	web.Config.ErrorLog = silent
	ctx, end := context.WithCancel(context.Background())
	web.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	web.StartTLS()
	t.Cleanup(func() {
		end() // a client that reconnects and watches would keep the server from stopping
		web.CloseClientConnections()
		web.Close()
	})
	config := &rest.Config{Host: web.URL, BearerToken: to.BearerToken, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return config
}
