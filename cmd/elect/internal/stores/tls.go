package stores

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// tlsParams are the URL parameters that say how to use TLS.
func tlsParams() []string {
	return []string{"cacert", "cert", "key", "servername", "insecure-skip-verify"}
}

// A tlsSource names the environment variables of a store's own tools, each
// perhaps empty.
type tlsSource struct {
	caCert, cert, key, serverName, skipVerify string
}

// tlsConfig returns nil if the URL is without TLS. An own certificate authority
// or key means TLS as well.
func (l *location) tlsConfig(env tlsSource) (*tls.Config, error) {
	ca := l.setting("cacert", env.caCert)
	cert, key := l.setting("cert", env.cert), l.setting("key", env.key)
	if !l.tls && ca == "" && cert == "" {
		for _, param := range tlsParams() {
			if l.query.Has(param) {
				return nil, fmt.Errorf("parameter %q without TLS", param)
			}
		}
		return nil, nil //nolint:nilnil // the clients take nil for no TLS
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: l.setting("servername", env.serverName)}
	if skip := l.setting("insecure-skip-verify", env.skipVerify); skip != "" {
		on, err := strconv.ParseBool(skip)
		if err != nil {
			return nil, errors.New("insecure-skip-verify is neither true nor false")
		}
		config.InsecureSkipVerify = on
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacert: no certificate in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("cert and key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
