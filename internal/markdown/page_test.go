package markdown_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/markdown"
)

func TestALineIsLikeAnotherButForItsNumbers(t *testing.T) {
	for line, outs := range map[string]map[string]bool{
		`{"remaining":7.912}`: {`{"remaining":6.1}`: true, `{"remaining":8}`: true, `{"remaining":""}`: false},
		`{"token":7}`:         {`{"token":12}`: true, `{"token":7.5}`: false},
		"on 127.0.0.1:80":     {"on 127.0.0.2:4040": true, "on localhost:80": false},
		"id 0123456789ab":     {"id ffffffffffff": true, "id 0123456789": false},
	} {
		for out, like := range outs {
			require.Equal(t, like, markdown.Unlike([]string{line}, out) == "", "%s\n%s", line, out)
		}
	}
}
