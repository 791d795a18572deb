package seal

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

// ReadSigners reads the CAs of a plane or a cluster from a kubeconfig or a file with certificates.
// It returns nil without a file.
func ReadSigners(file string) ([]*x509.Certificate, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the signer: %w", err)
	}
	if block, _ := pem.Decode(data); block == nil {
		if data, err = authorityOf(file); err != nil {
			return nil, err
		}
	}
	var signers []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the signer from %q: %w", file, err)
		}
		signers = append(signers, cert)
	}
	if len(signers) == 0 {
		return nil, fmt.Errorf("reading the CA of the signer: %q contains no certificate", file)
	}
	return signers, nil
}

// authorityOf returns the CA in the current context of a kubeconfig.
func authorityOf(file string) ([]byte, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the signer: %q is neither a certificate nor a kubeconfig", file)
	}
	if len(config.CAData) > 0 {
		return config.CAData, nil
	}
	return os.ReadFile(config.CAFile)
}
