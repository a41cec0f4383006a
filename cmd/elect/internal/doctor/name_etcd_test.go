//go:build unix

package doctor_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/electkv/election/internal/testenv"
)

// An etcdStreet has keys below /PREFIX/.
type etcdStreet struct {
	*street
	client *clientv3.Client
}

func newEtcdStreet(t *testing.T) *etcdStreet {
	t.Helper()
	addr := testenv.Etcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s := newStreet(t)
	s.url = func(params string) string { return "etcd://" + addr + "//" + s.prefix + "?" + params }
	return &etcdStreet{street: s, client: client}
}

func (s *etcdStreet) key(name string) string { return "/" + s.prefix + "/" + name }

func (s *etcdStreet) session() *concurrency.Session {
	s.Helper()
	session, err := concurrency.NewSession(s.client)
	require.NoError(s, err)
	s.Cleanup(func() { _ = session.Close() })
	return session
}

// queue has n clients lock the key of a name, and waits until all are in line.
func (s *etcdStreet) queue(name string, n int) {
	s.Helper()
	before := s.count(s.key(name) + "/")
	for i := range n {
		m := concurrency.NewMutex(s.session(), s.key(name))
		go func() { _ = m.Lock(s.ctx) }()
		require.Eventually(s, func() bool { return s.count(s.key(name)+"/") == before+int64(i+1) }, patience, moment)
	}
}

// elect has a client lead an old election, which has the prefix verbatim.
func (s *etcdStreet) elect(prefix, value string) {
	s.Helper()
	require.NoError(s, concurrency.NewElection(s.session(), prefix).Campaign(s.ctx, value))
}

func (s *etcdStreet) count(prefix string) int64 {
	s.Helper()
	resp, err := s.client.Get(s.ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(s, err)
	return resp.Count
}

// put puts a key without a lease, or with one of a minute.
func (s *etcdStreet) put(key, value string, leased bool) {
	s.Helper()
	opts := []clientv3.OpOption{}
	if leased {
		lease, err := s.client.Grant(s.ctx, 60)
		require.NoError(s, err)
		opts = append(opts, clientv3.WithLease(lease.ID))
	}
	_, err := s.client.Put(s.ctx, key, value, opts...)
	require.NoError(s, err)
}

// valkeyrie locks a name as that library does: a Mutex beside, and the value.
func (s *etcdStreet) valkeyrie(name string) {
	s.Helper()
	require.NoError(s, concurrency.NewMutex(s.session(), s.key(name)+"___lock").Lock(s.ctx))
	s.put(s.key(name), "theirs", false)
}

func TestTheDoctorRecognisesTheOldLocksOfEtcd(t *testing.T) {
	s := newEtcdStreet(t)
	const key, queue, claim = "layout=key", "layout=queue", "layout=claim"

	require.Equal(t, []string{"OK", "OK"}, s.examine("nothing", "nothing", key, queue))

	s.queue("mutex", 3)
	require.Equal(t, []string{"OK FAIL", "OK", "WARN"}, s.examine("concurrency.Mutex, two waiting", "mutex", key, queue, claim))

	s.queue("alone", 1)
	require.Equal(t, []string{"OK"}, s.examine("concurrency.Mutex, nobody waiting", "alone", claim))

	s.elect(s.key("election"), "host-7")
	require.Equal(t, []string{"OK FAIL", "OK", "OK"}, s.examine("concurrency.Election", "election", key, queue, queue+"&plain=true"))

	s.elect(s.key("slash/"), "host-7")
	require.Equal(t, []string{"OK FAIL", "FAIL", "OK"}, s.examine("an election whose prefix ends with a slash", "slash", key, queue, queue+"&suffix=/"))

	s.queue("long/name", 1)
	require.Equal(t, []string{"OK", "WARN"}, s.examine("the lock of a longer name", "long", key, queue))

	s.put(s.key("stuck")+"/left", "by hand", false)
	require.Equal(t, []string{"OK", "FAIL"}, s.examine("a key in line that nothing removes, nobody behind it", "stuck", key, queue))
	s.queue("stuck", 2)
	require.Equal(t, []string{"OK FAIL", "FAIL"}, s.examine("a key in line that nothing removes, two behind it", "stuck", key, queue))

	s.queue("behind", 1)
	s.put(s.key("behind")+"/left", "by hand", false)
	s.put(s.key("behind")+"/leased", "by hand", true)
	require.Equal(t, []string{"OK FAIL FAIL FAIL", "OK FAIL WARN"}, s.examine("keys made by hand behind a Mutex", "behind", key, queue))

	s.put(s.key("single"), "host-7", true)
	require.Equal(t, []string{"OK", "OK FAIL"}, s.examine("one key with a lease", "single", key, queue))

	s.put(s.key("data"), "host-7", false)
	require.Equal(t, []string{"FAIL", "OK WARN"}, s.examine("one key without a lease", "data", key, queue))

	s.valkeyrie("valkeyrie")
	require.Equal(t, []string{"FAIL FAIL", "OK WARN FAIL"}, s.examine("valkeyrie", "valkeyrie", key, queue))
	require.Equal(t, []string{"OK"}, s.examine("valkeyrie, with the name of its line", "valkeyrie___lock", queue))

	s.requireTold("etcd.txt")
}

func TestTheDoctorKnowsRecordsInEtcdWhateverTheURLSays(t *testing.T) {
	s := newEtcdStreet(t)
	const key, queue, plain = "layout=key", "layout=queue", "&plain=true"

	s.lead("one-key", key)
	require.Equal(t, []string{"OK", "WARN", "OK FAIL"}, s.examine("a record at one key", "one-key", key, key+plain, queue))
	s.lead("one-key-plain", key+plain)
	require.Equal(t, []string{"WARN", "OK", "OK FAIL"}, s.examine("a plain value at one key", "one-key-plain", key, key+plain, queue))
	s.lead("line", queue)
	require.Equal(t, []string{"OK FAIL", "OK", "WARN"}, s.examine("a record in line", "line", key, queue, queue+plain))
	s.lead("line-plain", queue+plain)
	require.Equal(t, []string{"OK FAIL", "WARN", "OK"}, s.examine("a plain value in line", "line-plain", key, queue, queue+plain))

	// What somebody else writes over the value is not ours any more.
	s.put(s.key("one-key-plain"), "our address", true)
	require.Equal(t, []string{"OK"}, s.examine("another's write over a plain value", "one-key-plain", key+plain))
	s.put(s.key("one-key"), "x", false)
	require.Equal(t, []string{"FAIL"}, s.examine("another's write over a record", "one-key", key))

	const observer = "expiry=observer"
	s.lead("observed", observer)
	require.Equal(t, []string{"OK", "WARN", "WARN", "OK FAIL"}, s.examine("a record whose expiry candidates judge", "observed", observer, "expiry=store", "plain=true", queue))
	s.lead("leased", key)
	require.Equal(t, []string{"WARN"}, s.examine("a record with a lease, where candidates judge", "leased", observer))
	s.lead("leased-plain", key+plain)
	require.Equal(t, []string{"WARN"}, s.examine("a plain value with a lease, where candidates judge", "leased-plain", observer))
	s.put(s.key("observed"), "x", false)
	require.Equal(t, []string{"FAIL"}, s.examine("another's write over a record whose expiry candidates judge", "observed", observer))

	s.requireTold("etcd-records.txt")
}

func TestTheDoctorChangesNothingAtAName(t *testing.T) {
	s := newEtcdStreet(t)
	s.queue("job", 2)
	s.lead("job", "layout=key")
	before, err := s.client.Get(s.ctx, s.key("job"))
	require.NoError(t, err)
	s.examine("all", "job", "layout=key", "layout=key&plain=true", "layout=queue", "layout=queue&plain=true", "layout=claim")
	after, err := s.client.Get(s.ctx, s.key("job"))
	require.NoError(t, err)
	require.Equal(t, before.Header.Revision, after.Header.Revision, "somebody wrote")
}

func TestTheLongestLineIsCounted(t *testing.T) {
	s := newEtcdStreet(t)
	s.queue("crowd", 1)
	for i := range 2000 {
		s.put(s.key("crowd")+"/"+strconv.Itoa(i), "", false)
	}
	s.examine("crowd", "crowd", "layout=queue")
	require.Contains(t, s.told.String(), "2000 waiting")
}
