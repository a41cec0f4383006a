package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// Its connection was on the way when it was taken from the list.
func TestOneThatIsNoMemberAnyMoreHasNoConnection(t *testing.T) {
	authority := testenv.NewAuthority(t)
	n, err := New(Config{Protocol: Protocol{Name: "echo"}, Self: "127.0.0.1:1", Members: []string{"127.0.0.1:2"}, Clients: 1, MaxWait: time.Second, TLS: authority.Config("127.0.0.1")})
	require.NoError(t, err)
	defer n.Close()
	_, err = n.attach("127.0.0.1:2", 1, nil)
	require.NoError(t, err)
	n.log.complain("127.0.0.1:2", "trouble", "trouble", ErrMalformed)
	n.peers["127.0.0.1:2"].link = nil // there is no connection to close
	require.NoError(t, n.SetMembers(nil))
	require.Empty(t, n.log.last, "nothing is kept of it")
	n.suffer("127.0.0.1:2", ErrMalformed)
	require.Empty(t, n.log.last, "nothing is said of it any more")
	_, err = n.attach("127.0.0.1:2", 1, nil)
	require.ErrorContains(t, err, `member "127.0.0.1:2" has been taken from the list of members`)
	require.Len(t, n.peers, 1)
}
