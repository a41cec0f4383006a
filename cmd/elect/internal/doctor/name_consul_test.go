//go:build unix

package doctor_test

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A consulStreet has keys below PREFIX/.
type consulStreet struct {
	*street
	client *api.Client
}

func newConsulStreet(t *testing.T) *consulStreet {
	t.Helper()
	config := api.DefaultConfig()
	config.Address = testenv.Consul(t)
	client, err := api.NewClient(config)
	require.NoError(t, err)
	s := newStreet(t)
	s.url = func(params string) string {
		return "consul://" + config.Address + "/" + s.prefix + "?min-ttl=1s&" + params
	}
	return &consulStreet{street: s, client: client}
}

func (s *consulStreet) key(name string) string { return s.prefix + "/" + name }

// lock locks a key by api.Lock, in a session of that name.
func (s *consulStreet) lock(name, session string) *api.Lock {
	s.Helper()
	lock, err := s.client.LockOpts(&api.LockOptions{Key: s.key(name), Value: []byte("host-7"), SessionName: session})
	require.NoError(s, err)
	_, err = lock.Lock(s.ctx.Done())
	require.NoError(s, err)
	s.Cleanup(func() { _ = lock.Unlock() })
	return lock
}

// acquire locks a key without the flags of locks.
func (s *consulStreet) acquire(name, value string, session *api.SessionEntry) {
	s.Helper()
	id, _, err := s.client.Session().CreateNoChecks(session, nil)
	require.NoError(s, err)
	s.Cleanup(func() { _, _ = s.client.Session().Destroy(id, nil) })
	ok, _, err := s.client.KV().Acquire(&api.KVPair{Key: s.key(name), Value: []byte(value), Session: id}, nil)
	require.NoError(s, err)
	require.True(s, ok)
}

func (s *consulStreet) put(name, value string) {
	s.Helper()
	_, err := s.client.KV().Put(&api.KVPair{Key: s.key(name), Value: []byte(value)}, nil)
	require.NoError(s, err)
}

// slot takes one of two slots of a semaphore.
func (s *consulStreet) slot(name string) *api.Semaphore {
	s.Helper()
	semaphore, err := s.client.SemaphorePrefix(s.key(name), 2)
	require.NoError(s, err)
	_, err = semaphore.Acquire(s.ctx.Done())
	require.NoError(s, err)
	s.Cleanup(func() { _ = semaphore.Release() })
	return semaphore
}

func TestTheDoctorRecognisesTheOldLocksOfConsul(t *testing.T) {
	s := newConsulStreet(t)
	const usual, plain = "plain=false", "plain=true"

	require.Equal(t, []string{"OK", "OK"}, s.examine("nothing", "nothing", usual, plain))

	lock := s.lock("lock", "")
	require.Equal(t, []string{"OK", "OK"}, s.examine("api.Lock", "lock", usual, plain))
	require.NoError(t, lock.Unlock())
	require.Equal(t, []string{"OK"}, s.examine("api.Lock, released", "lock", usual))

	command := s.lock("command/.lock", "Consul lock for 'sleep 9' at 'command'")
	require.Equal(t, []string{"OK FAIL"}, s.examine("consul lock", "command", usual))
	require.Equal(t, []string{"OK"}, s.examine("consul lock, with the name of its key", "command/.lock", usual))
	require.NoError(t, command.Unlock())
	require.Equal(t, []string{"OK WARN"}, s.examine("consul lock, released", "command", usual))

	s.lock("vault", "Vault Lock")
	require.Equal(t, []string{"WARN"}, s.examine("Vault", "vault", usual))
	s.lock("other", "of a program")
	require.Equal(t, []string{"OK"}, s.examine("a lock in a session of another name", "other", usual))

	semaphore := s.slot("semaphore")
	require.Equal(t, []string{"OK FAIL"}, s.examine("api.Semaphore", "semaphore", usual))
	require.Equal(t, []string{"FAIL"}, s.examine("api.Semaphore, with the name of its key", "semaphore/.lock", usual))
	require.NoError(t, semaphore.Release())
	require.Equal(t, []string{"OK WARN"}, s.examine("api.Semaphore, released", "semaphore", usual))
	require.Equal(t, []string{"FAIL"}, s.examine("api.Semaphore, released, with the name of its key", "semaphore/.lock", usual))

	s.acquire("patroni/leader", "postgres-1", &api.SessionEntry{TTL: "15s", LockDelay: 1, Behavior: "delete"})
	require.Equal(t, []string{"FAIL"}, s.examine("Patroni", "patroni/leader", usual))
	s.acquire("litefs", `{"hostname":"h","advertise-url":"http://h:20202"}`, &api.SessionEntry{TTL: "10s", Behavior: "delete"})
	require.Equal(t, []string{"FAIL"}, s.examine("litefs", "litefs", usual))
	s.acquire("endless", "by hand", &api.SessionEntry{})
	require.Equal(t, []string{"FAIL"}, s.examine("a session without a TTL", "endless", usual))
	s.put("data", "on\x1b[31m")
	require.Equal(t, []string{"FAIL"}, s.examine("plain data", "data", usual))

	s.requireTold("consul.txt")
}

func TestTheDoctorKnowsRecordsInConsulWhateverTheURLSays(t *testing.T) {
	s := newConsulStreet(t)
	const usual, plain = "plain=false", "plain=true"

	s.lead("usual", usual)
	require.Equal(t, []string{"OK", "WARN"}, s.examine("a record", "usual", usual, plain))
	s.lead("plain", plain)
	require.Equal(t, []string{"WARN", "OK"}, s.examine("a plain value", "plain", usual, plain))

	// The companion of a record whose key is gone proves nothing of the next lock.
	_, err := s.client.KV().Delete(s.key("plain"), nil)
	require.NoError(t, err)
	s.lock("plain", "")
	require.Equal(t, []string{"OK"}, s.examine("another's lock in the place of a plain value", "plain", plain))
	require.Contains(t, s.told.String(), "looks like api.Lock")

	s.put("usual", "x")
	require.Equal(t, []string{"FAIL"}, s.examine("another's write over a record", "usual", usual))
	s.put("beside.election", "x")
	require.Equal(t, []string{"OK", "FAIL"}, s.examine("another's key where a plain value's record belongs", "beside", usual, plain))

	const observer = "expiry=observer"
	s.lead("observed", observer)
	require.Equal(t, []string{"OK", "WARN", "WARN"}, s.examine("a record whose expiry candidates judge", "observed", observer, usual, plain))
	s.lead("session", usual)
	require.Equal(t, []string{"WARN"}, s.examine("a record with a session, where candidates judge", "session", observer))
	lock := s.lock("released", "")
	require.Equal(t, []string{"WARN"}, s.examine("api.Lock, where candidates judge", "released", observer))
	require.NoError(t, lock.Unlock())
	require.Equal(t, []string{"FAIL"}, s.examine("api.Lock, released, where candidates judge", "released", observer))
	s.put("observed", "x")
	require.Equal(t, []string{"FAIL"}, s.examine("another's write over a record whose expiry candidates judge", "observed", observer))

	s.requireTold("consul-records.txt")
}

func TestTheDoctorNeedsNoPermissionForSessions(t *testing.T) {
	config := api.DefaultConfig()
	config.Address = testenv.StartConsulWithACL(t).Addr()
	config.Token = testenv.ConsulManagementToken
	manager, err := api.NewClient(config)
	require.NoError(t, err)
	policy, _, err := manager.ACL().PolicyCreate(&api.ACLPolicy{Name: "keys", Rules: `key_prefix "jobs/a" { policy = "read" }`}, nil)
	require.NoError(t, err)
	token, _, err := manager.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	require.NoError(t, err)

	s := &consulStreet{street: newStreet(t), client: manager}
	s.prefix = "jobs"
	s.url = func(string) string { return "consul://" + token.SecretID + "@" + config.Address + "/jobs" }
	s.lock("a", "")
	s.lock("b", "")
	require.Equal(t, []string{"OK"}, s.examine("a key that may be read", "a", ""))
	require.Contains(t, s.told.String(), "looks like api.Lock, or a program with its flags, session UUID, value")
	require.Equal(t, []string{"FAIL"}, s.examine("a key that may not", "b", ""))
	require.Contains(t, s.told.String(), "Permission denied")
}
