// Package seal has the flags that select how backups and snapshots are encrypted and decrypted:
// with a passphrase or for age recipients. Start with Flags.
package seal

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-dev/drover/internal/cli/ui"
)

// Flags select how a file is encrypted and decrypted.
type Flags struct {
	passphraseFile string
	recipients     []string
	identityFile   string
}

// AddEncryption adds the flags of a command that encrypts.
func (f *Flags) AddEncryption(cmd *cobra.Command) {
	f.addPassphrase(cmd)
	cmd.Flags().StringSliceVar(&f.recipients, "recipient", nil, "age `recipient` (age1…) to encrypt for, instead of a passphrase; repeatable")
}

// AddDecryption adds the flags of a command that decrypts.
func (f *Flags) AddDecryption(cmd *cobra.Command) {
	f.addPassphrase(cmd)
	cmd.Flags().StringVar(&f.identityFile, "identity", "", "`file` with age identities (AGE-SECRET-KEY-1…), instead of a passphrase")
}

func (f *Flags) addPassphrase(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.passphraseFile, "passphrase-file", "", "`file` that holds the passphrase in its first line")
}

// HasIdentity reports whether the caller decrypts with age identities instead of a passphrase.
func (f *Flags) HasIdentity() bool { return f.identityFile != "" }

// DefaultIdentity uses the identities in a file unless the caller chose how to decrypt.
func (f *Flags) DefaultIdentity(file string) {
	if f.identityFile == "" && f.passphraseFile == "" {
		f.identityFile = file
	}
}

// Recipients returns whom to encrypt for.
func (f *Flags) Recipients(io *ui.IO) ([]age.Recipient, error) {
	if len(f.recipients) > 0 {
		if f.passphraseFile != "" {
			return nil, ui.Usagef("--recipient and --passphrase-file are mutually exclusive")
		}
		return parseRecipients(f.recipients)
	}
	passphrase, err := f.passphrase(io, readNewPassphrase)
	if err != nil {
		return nil, err
	}
	r, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, fmt.Errorf("using the passphrase: %w", err)
	}
	return []age.Recipient{r}, nil
}

func parseRecipients(names []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, name := range names {
		r, err := age.ParseX25519Recipient(name)
		if err != nil {
			return nil, ui.Usagef("--recipient %q is not an age recipient: %w", name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// Identities returns what decrypts.
func (f *Flags) Identities(io *ui.IO) ([]age.Identity, error) {
	if f.identityFile != "" {
		file, err := os.Open(f.identityFile)
		if err != nil {
			return nil, fmt.Errorf("reading age identities: %w", err)
		}
		defer file.Close()
		return age.ParseIdentities(file)
	}
	passphrase, err := f.passphrase(io, readPassphrase)
	if err != nil {
		return nil, err
	}
	i, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fmt.Errorf("using the passphrase: %w", err)
	}
	return []age.Identity{i}, nil
}

// passphrase reads a file, the environment or the terminal, never an argument, which every user of
// the machine could read.
func (f *Flags) passphrase(io *ui.IO, ask func(*ui.IO) (string, error)) (string, error) {
	if f.passphraseFile != "" {
		data, err := os.ReadFile(f.passphraseFile)
		if err != nil {
			return "", fmt.Errorf("reading the passphrase: %w", err)
		}
		line, _, _ := strings.Cut(string(data), "\n")
		return notEmpty(strings.TrimSuffix(line, "\r"))
	}
	if p := os.Getenv("DROVER_PASSPHRASE"); p != "" {
		return p, nil
	}
	if !io.Interactive || !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", ui.Usagef("a passphrase is required, and standard input is not a terminal: use --passphrase-file or $DROVER_PASSPHRASE")
	}
	return ask(io)
}

func readPassphrase(io *ui.IO) (string, error) { return readHidden(io, "Passphrase: ") }

func readNewPassphrase(io *ui.IO) (string, error) {
	first, err := readPassphrase(io)
	if err != nil {
		return "", err
	}
	second, err := readHidden(io, "Repeat passphrase: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the two passphrases differ")
	}
	return first, nil
}

func readHidden(io *ui.IO, prompt string) (string, error) {
	fmt.Fprint(io.Err, prompt)
	data, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(io.Err)
	if err != nil {
		return "", fmt.Errorf("reading the passphrase: %w", err)
	}
	return notEmpty(string(data))
}

func notEmpty(s string) (string, error) {
	if s == "" {
		return "", errors.New("the passphrase is empty")
	}
	return s, nil
}
