package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	keyFile  = "ca.key"
	planFile = "cluster.json"

	// AuthorityFile has the certificate of the authority.
	AuthorityFile = "ca.pem"
	// PairFile has the key and the certificate of a member or client.
	PairFile = "elect.pem"
	// EnvFile has its environment.
	EnvFile = "elect.env"
)

// A Folder has the authority of a cluster, and the files of its members.
type Folder struct {
	Plan

	dir       string // the whole path
	shown     string // as it was given
	authority *authority
	trusted   []byte // its certificate, and perhaps that of another authority below
}

// An Issue is what was made for a member or client.
type Issue struct {
	// Name is the address of the member, or the name of the client.
	Name string
	// Folder has the files.
	Folder string
	// Target is where they are used: host:folder, or just a folder of this host.
	Target string
}

// Init makes the folder of a new cluster. It makes all of it or nothing, and never touches
// what is there.
func Init(dir string, plan Plan, now time.Time) (f *Folder, issued []Issue, err error) {
	if plan, err = plan.Check(); err != nil {
		return nil, nil, err
	}
	if f, err = at(dir); err != nil {
		return nil, nil, err
	}
	a, err := newAuthority(plan.Cluster, now)
	if err != nil {
		return nil, nil, err
	}
	f.Plan, f.authority, f.trusted = plan, a, certText(a.cert.Raw)
	undo, err := f.claim()
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	if err = write(f.path(AuthorityFile), f.trusted, 0o644); err != nil {
		return nil, nil, err
	}
	if issued, err = f.issue(plan.all(), now); err != nil {
		return nil, nil, err
	}
	return f, issued, f.keep(plan) // the last file: without it, the folder is not whole
}

// claim makes the folder, with the key of the authority, for this process alone.
func (f *Folder) claim() (undo func(), err error) {
	text, err := keyText(f.authority.key)
	if err != nil {
		return nil, err
	}
	there, err := os.ReadDir(f.dir)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case isNew:
		err = os.MkdirAll(f.dir, 0o700)
	case err == nil && slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == planFile }):
		err = fmt.Errorf("%s has a cluster, which stays as it is: use elect peers renew or add, or name another folder for another cluster", f.dir)
	case err == nil && len(there) > 0:
		err = fmt.Errorf("%s is not empty: name a new folder, so that nothing is overwritten", f.dir)
	}
	if err != nil {
		return nil, err
	}
	key, err := os.OpenFile(f.path(keyFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil { // another process may be faster
		return nil, err
	}
	_, err = key.Write(text)
	undo = func() {
		for _, name := range append(folders(f.all()), AuthorityFile, planFile, keyFile) {
			os.RemoveAll(f.path(name))
		}
		if isNew {
			os.Remove(f.dir)
		}
	}
	if err = errors.Join(err, key.Sync(), key.Close()); err != nil {
		undo()
	}
	return undo, err
}

// at returns a folder of which nothing is known but its path.
func at(dir string) (*Folder, error) {
	if dir == "" {
		return nil, errors.New("the name of the folder is empty")
	}
	whole, err := filepath.Abs(dir)
	if err == nil {
		err = checkPath(whole)
	}
	return &Folder{dir: whole, shown: dir}, err
}

// Open returns the folder that Init has made.
func Open(dir string, now time.Time) (*Folder, error) {
	f, err := at(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.path(planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: name the folder that elect peers init has made", f.dir, planFile)
	}
	if err != nil {
		return nil, err
	}
	if err = json.Unmarshal(text, &f.Plan); err == nil {
		f.Plan, err = f.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(planFile), err)
	}
	f.trusted, err = os.ReadFile(f.path(AuthorityFile))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(f.path(keyFile))
	if err != nil {
		return nil, err
	}
	if f.authority, err = readAuthority(f.trusted, key); err == nil {
		err = f.authority.lasts(now)
	}
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", f.path(AuthorityFile), keyFile, err)
	}
	return f, nil
}

// Renew signs certificates: for those that are named, for all, or, if nobody is named,
// for those that have less than a third of their life left, or none that is right. It
// returns what it has made, even with an error.
func (f *Folder) Renew(who []string, all bool, now time.Time) ([]Issue, error) {
	named := []string{}
	for _, name := range who {
		if addr, err := address(name); err == nil {
			name = addr
		}
		if !slices.Contains(f.all(), name) {
			return nil, fmt.Errorf("%q is not in this cluster: %s are", name, strings.Join(f.all(), ", "))
		}
		named = append(named, name)
	}
	switch {
	case all:
		named = f.all()
	case len(named) == 0:
		named = slices.DeleteFunc(f.all(), func(who string) bool { return now.Before(f.dueAt(who)) })
	}
	return f.issue(named, now)
}

// Due returns whose certificate is to be renewed next, and when.
func (f *Folder) Due() (who string, at time.Time) {
	for _, w := range f.all() {
		if t := f.dueAt(w); who == "" || t.Before(at) {
			who, at = w, t
		}
	}
	return who, at
}

// dueAt returns when a certificate has a third of its life left. One that is not right is
// due since ever.
func (f *Folder) dueAt(who string) time.Time {
	text, err := os.ReadFile(filepath.Join(f.path(folderOf(who)), PairFile))
	if err != nil {
		return time.Time{}
	}
	cert, err := f.authority.signed(text, f.host(who))
	if err != nil {
		return time.Time{}
	}
	return DueAt(cert.NotBefore, cert.NotAfter)
}

// Add puts members and clients into the cluster. It returns what it has made for them, and
// which files with environments are not up to date, because somebody has edited them.
func (f *Folder) Add(peers, clients []string, now time.Time) (issued []Issue, edited []string, err error) {
	before := f.Plan
	plan := before
	plan.Peers, plan.Clients = slices.Concat(before.Peers, peers), slices.Concat(before.Clients, clients)
	if len(peers) > 0 {
		plan.Parameters = without(before.Parameters, "founding") // which was for the first start of all
	}
	if plan, err = plan.Check(); err != nil {
		return nil, nil, err
	}
	added := slices.DeleteFunc(plan.all(), func(who string) bool { return slices.Contains(before.all(), who) })
	for _, name := range folders(added) {
		if _, err := os.Lstat(f.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, errors.Join(err, fmt.Errorf("%s is there already: move it away", f.path(name)))
		}
	}
	if err := f.keep(plan); err != nil { // first: renew makes what is missing after it
		return nil, nil, err
	}
	f.Plan = plan
	if len(peers) > 0 {
		if edited, err = f.describeAgain(before); err != nil {
			return nil, edited, err
		}
	}
	issued, err = f.issue(added, now)
	return issued, edited, err
}

// issue makes certificates, one after the other, and what else is missing.
func (f *Folder) issue(all []string, now time.Time) (issued []Issue, err error) {
	for _, who := range all {
		text, err := f.authority.sign(f.host(who), f.name(who), time.Duration(f.ValidFor), now)
		if err != nil {
			return issued, err
		}
		folder := f.path(folderOf(who))
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return issued, err
		}
		if _, err := os.Lstat(filepath.Join(folder, EnvFile)); errors.Is(err, fs.ErrNotExist) {
			if err := f.describe(who); err != nil {
				return issued, err
			}
		}
		if err := write(filepath.Join(folder, AuthorityFile), f.trusted, 0o644); err != nil {
			return issued, err
		}
		if err := write(filepath.Join(folder, PairFile), text, 0o600); err != nil {
			return issued, err
		}
		issued = append(issued, f.about(who))
	}
	return issued, nil
}

// Others returns those that are not among some.
func (f *Folder) Others(some []Issue) []Issue {
	others := []Issue{}
	for _, who := range f.all() {
		if !slices.ContainsFunc(some, func(i Issue) bool { return i.Name == who }) {
			others = append(others, f.about(who))
		}
	}
	return others
}

func (f *Folder) about(who string) Issue {
	i := Issue{Name: who, Folder: filepath.Join(f.shown, folderOf(who)), Target: f.at(f.dir, who)}
	if f.Files != "" {
		i.Target = f.name(who) + ":" + f.Files
		if strings.Contains(f.name(who), ":") {
			i.Target = "[" + f.name(who) + "]:" + f.Files
		}
	}
	return i
}

// describe writes the environment of a member or client.
func (f *Folder) describe(who string) error {
	return write(filepath.Join(f.path(folderOf(who)), EnvFile), f.environment(f.dir, who), 0o644)
}

// SetValidFor has certificates be valid for that long from now on.
func (f *Folder) SetValidFor(d time.Duration) error {
	plan := f.Plan
	plan.ValidFor = Span(d)
	plan, err := plan.Check()
	if err == nil {
		err = f.keep(plan)
	}
	if err == nil {
		f.Plan = plan
	}
	return err
}

// describeAgain writes the environments of those who were in another plan, but for those that
// are not as they were written for that.
func (f *Folder) describeAgain(before Plan) (edited []string, err error) {
	for _, who := range before.all() {
		path := filepath.Join(f.path(folderOf(who)), EnvFile)
		there, err := os.ReadFile(path)
		if err == nil && !bytes.Equal(there, before.environment(f.dir, who)) {
			edited = append(edited, path)
		} else if err := f.describe(who); err != nil {
			return edited, err
		}
	}
	return edited, nil
}

// Ends returns when the authority ends.
func (f *Folder) Ends() time.Time { return f.authority.cert.NotAfter }

// keep writes the plan.
func (f *Folder) keep(plan Plan) error {
	text, err := plan.text()
	if err != nil {
		return err
	}
	return write(f.path(planFile), text, 0o644)
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }

// host returns what the certificate of a member is for. A client has none.
func (f *Folder) host(who string) string {
	if f.member(who) {
		return hostOf(who)
	}
	return ""
}

// name returns what people see in a certificate.
func (f *Folder) name(who string) string {
	if f.member(who) {
		return hostOf(who)
	}
	return who
}

func folders(all []string) []string {
	names := []string{}
	for _, who := range all {
		names = append(names, folderOf(who))
	}
	return names
}
